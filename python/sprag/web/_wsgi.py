"""Rate limits around a WSGI application (PEP 3333)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from sprag.web._lazy import SpaceSource
from sprag.web._limits import Limit, Limits
from sprag.web._refusal import RateLimitedError, Refusal
from sprag.web._request import Request, WSGIRequest
from sprag.web._routes import Path

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class WSGIMiddleware:
    """Rate limits around a WSGI application: `app.wsgi_app = web.WSGIMiddleware(app.wsgi_app, "shm:shop", [...])`.

    The options are those of `ASGIMiddleware`.
    """

    def __init__(
        self,
        app: WSGIApplication,
        space: SpaceSource,
        limits: Iterable[Limit],
        *,
        exempt: Iterable[Path] | Callable[[Request], bool] = (),
        headers: bool = True,
        on_error: Literal["allow", "refuse"] = "allow",
    ) -> None:
        self.app = app
        self._limits = Limits(space, limits, exempt=exempt, headers=headers, on_error=on_error)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        verdict = self._limits.check(WSGIRequest(environ))
        if verdict.refusal is not None:
            return _refuse(verdict.refusal, environ, start_response)
        has_started = False

        def start_with_fields(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Any:
            nonlocal has_started
            has_started = True
            if verdict.fields and not (verdict.is_used_up and status.startswith("3")):
                headers = [*headers, *verdict.fields]
            return (
                start_response(status, headers, exc_info)
                if exc_info
                else start_response(status, headers)
            )

        def refuse(error: RateLimitedError) -> Iterable[bytes]:
            if has_started:
                raise error
            return _refuse(error._refusal, environ, start_response)

        try:
            body = self.app(environ, start_with_fields)
        except RateLimitedError as error:
            return refuse(error)
        return body if has_started else _Late(body, refuse)


class _Late:
    """The content of an application that starts its response when it is asked for the first of it, as a generator
    does."""

    __slots__ = ("_body", "_refuse")

    def __init__(
        self, body: Iterable[bytes], refuse: Callable[[RateLimitedError], Iterable[bytes]]
    ) -> None:
        self._body, self._refuse = body, refuse

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        except RateLimitedError as error:
            yield from self._refuse(error)

    def close(self) -> None:
        if (close := getattr(self._body, "close", None)) is not None:
            close()


def _refuse(
    refusal: Refusal, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    start_response(f"{refusal.status} {refusal.phrase}", list(refusal.fields))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [refusal.body]
