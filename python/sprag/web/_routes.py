"""Which requests a limit is for: path patterns and methods."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sprag.web._request import Request

Path = str | re.Pattern[str]


class Routes:
    """Paths and methods; without any, all of them."""

    __slots__ = ("_methods", "_paths")

    def __init__(self, paths: Iterable[Path] = (), methods: Iterable[str] = ()) -> None:
        if isinstance(paths, (str, re.Pattern)):
            raise TypeError("paths must be several patterns, not one")
        if isinstance(methods, str):
            raise TypeError("methods must be several, not one")
        self._paths = [path if isinstance(path, re.Pattern) else _compiled(path) for path in paths]
        self._methods = {method.upper() for method in methods}
        # What answers GET answers HEAD too, and would be a way around the limit.
        if "GET" in self._methods:
            self._methods.add("HEAD")

    @property
    def are_all(self) -> bool:
        """Whether every request matches."""
        return not self._paths and not self._methods

    def match(self, request: Request) -> bool:
        """Whether the request is one of them."""
        return (not self._methods or request.method in self._methods) and (
            not self._paths or self.match_path(request.path)
        )

    def match_path(self, path: str) -> bool:
        """Whether one of the patterns is the whole path."""
        return any(pattern.fullmatch(path) for pattern in self._paths)


def _compiled(pattern: str) -> re.Pattern[str]:
    """`*` is any one segment or a part of one, `**` anything; a slash at the end may be there or not."""
    if not pattern.startswith("/"):
        raise ValueError(f"the path {pattern!r} must begin with a slash")
    pattern = pattern.rstrip("/")
    beneath = pattern.endswith("/**")
    parts = re.split(r"(\*\*|\*)", pattern[:-3] if beneath else pattern)
    wild = {"*": "[^/]+", "**": ".*"}
    text = "".join(wild.get(part) or re.escape(part) for part in parts)
    return re.compile(text + ("(?:/.*)?" if beneath else "/?"), re.DOTALL)
