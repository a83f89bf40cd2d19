"""The pages and the examples run as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
PAGES = [PACKAGE / "README.md", PACKAGE.parent / "README.md"]
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(PACKAGE.parent)}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S))
]
EXAMPLES = {
    "crawler": "12 pages of 3 hosts\n",
    "fenced_writer": "written in time\nwritten by the next holder\n",
    "shared_limit": "150 of 400 admitted, whoever asked first\n",
}


def run(args: list[str], directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", *args],
        env={**os.environ, "SPRAG_DIR": str(directory)},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_each_page_shows_python() -> None:
    assert len(BLOCKS) == 8


@pytest.mark.parametrize("block", BLOCKS)
def test_what_a_page_shows_runs(block: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    script = tmp_path / "shown.py"
    script.write_text(block)
    run([str(script)], tmp_path)


@pytest.mark.parametrize("name", sorted(path.stem for path in PACKAGE.glob("examples/*.py")))
def test_an_example_says_what_it_should(name: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert run([str(PACKAGE / "examples" / f"{name}.py")], tmp_path).endswith(EXAMPLES[name])
