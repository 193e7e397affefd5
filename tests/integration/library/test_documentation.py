"""Every example of docs/library.md runs: from the top, with what the examples above it have left."""

import ast
import inspect
import os
import re
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import husk
from husk.library import blocking
from husk.library.embedded import Engine
from tests.support.engines import Place

ROOT = Path(__file__).parents[3]
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page: str) -> list[tuple[int, str]]:
    """(line, code) of each."""
    return [(page.count("\n", 0, found.start(1)), found[1]) for found in EXAMPLE.finditer(page)]


async def run(code: str, line: int, names: dict[str, Any]) -> None:
    tree = ast.increment_lineno(ast.parse(code), line)
    compiled = compile(tree, "docs/library.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    outcome = FunctionType(compiled, names)()
    if inspect.isawaitable(outcome):
        await outcome


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers")
async def test_examples_of_the_library(daemon, monkeypatch):
    monkeypatch.setenv("HUSK_HOST", daemon.host)
    with Place() as ours, Place() as theirs:
        settings = f'data_root="{theirs.config.data_root}", exec_root="{theirs.config.exec_root}"'
        page = (ROOT / "docs" / "library.md").read_text().replace('data_root="/var/lib/app"', settings)
        page = page.replace("unix:///run/husk.sock", daemon.host)
        found = examples(page)
        assert len(found) > 12
        try:
            async with Engine.open(ours.config) as engine:
                names: dict[str, Any] = {"husk": husk}
                for line, code in found:
                    names["engine"] = engine
                    await run(code, line, names)
        finally:
            blocking.close()
