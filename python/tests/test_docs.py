"""What `help()` says and what the stubs say is the same."""

from __future__ import annotations

import ast
from pathlib import Path

import sprag._sprag

STUBS = ast.parse(Path(sprag._sprag.__file__).with_name("_sprag.pyi").read_text())


def documented(node: ast.AST, owner: object, path: str) -> list[tuple[str, str, str | None]]:
    """Each documented name beneath a node: its path, what the stub says, and what the object says."""
    found = []
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.ClassDef) and inner.name != "__new__":
            name = f"{path}.{inner.name}"
            thing = getattr(owner, inner.name)
            said = ast.get_docstring(inner)
            if said is not None:
                found.append((name, said, thing.__doc__))
            if isinstance(inner, ast.ClassDef):
                found += documented(inner, thing, name)
    return found


def test_help_says_what_the_stubs_say() -> None:
    names = documented(STUBS, sprag._sprag, "sprag")
    assert len(names) > 100
    for name, stub, runtime in names:
        assert runtime is not None, name
        assert runtime.split() == stub.split(), name
