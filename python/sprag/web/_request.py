"""A request as limits see it: alike for ASGI and WSGI. Owns what is read from a scope or an environment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any


class Request(ABC):
    """What keys, costs and exemptions are told from."""

    __slots__ = ("raw",)

    raw: Mapping[str, Any]
    """The ASGI scope, or the WSGI environment."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    @property
    @abstractmethod
    def method(self) -> str:
        """The method, in capitals; `GET` of what opens a WebSocket."""

    @property
    @abstractmethod
    def path(self) -> str:
        """The path, decoded, with what the application is mounted at."""

    @property
    @abstractmethod
    def peer(self) -> str | None:
        """The address at the other end of the connection as the server tells it: a proxy's, if there is one
        between. `None` where there is none, as of a Unix socket."""

    @property
    @abstractmethod
    def user(self) -> str | None:
        """Who has been authenticated: by the server or a middleware outside of this one. `None` if nobody."""

    @abstractmethod
    def header(self, name: str) -> str | None:
        """A header field's value, several joined by commas in their order. Names are the same in any case."""


class ASGIRequest(Request):
    """A scope of type `http` or `websocket`."""

    __slots__ = ()

    @property
    def method(self) -> str:
        method: str = self.raw.get("method", "GET")
        return method

    @property
    def path(self) -> str:
        path: str = self.raw["path"]
        return path

    @property
    def peer(self) -> str | None:
        client = self.raw.get("client")
        return client[0] or None if client else None

    @property
    def user(self) -> str | None:
        # As Starlette's middleware for authentication leaves it.
        user = self.raw.get("user")
        if user is None or not getattr(user, "is_authenticated", False):
            return None
        try:
            return str(user.identity)
        except (AttributeError, NotImplementedError):
            return str(user.display_name)

    def header(self, name: str) -> str | None:
        wanted = name.lower().encode("latin-1")
        values = [
            value.decode("latin-1") for field, value in self.raw["headers"] if field == wanted
        ]
        return ", ".join(values) if values else None


class WSGIRequest(Request):
    """An environment."""

    __slots__ = ()

    @property
    def method(self) -> str:
        method: str = self.raw["REQUEST_METHOD"]
        return method

    @property
    def path(self) -> str:
        path: str = self.raw.get("SCRIPT_NAME", "") + self.raw.get("PATH_INFO", "")
        # The environment has bytes as if they were Latin-1.
        return path.encode("latin-1").decode("utf-8", "replace")

    @property
    def peer(self) -> str | None:
        return self.raw.get("REMOTE_ADDR") or None

    @property
    def user(self) -> str | None:
        return self.raw.get("REMOTE_USER") or None

    def header(self, name: str) -> str | None:
        variable = name.upper().replace("-", "_")
        if variable not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            variable = "HTTP_" + variable
        value: str | None = self.raw.get(variable)
        return value
