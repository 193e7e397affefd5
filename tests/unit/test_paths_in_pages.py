"""Paths, modules and tests that the pages name are there: a file that has moved takes its mentions along."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import husk

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TREES = ("bench", "docs", "examples", "packaging", "scripts", "src", "tests")
# Words that look like ours and are not: a media type, files that are made, an image, references, units, attributes.
OTHERS = {
    "application/json", "build/bench", "docker/dockerfile", "refs/replace", "husk.service", "husk.socket",
    "husk.request_id", "husk.step",
}  # fmt: skip

_FENCE = re.compile(r"^(\s*)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_WORD = re.compile(
    r"(?:[\w.-]+/)*[\w-][\w.-]*\.py"
    rf"|(?:{'|'.join(TREES)})(?:/[\w.-]+)+/?"
    r"|(?:[a-z_]+/)+[a-z_]+/?"
    r"|husk(?:\.[a-z_0-9]+)+"
)


@cache
def tree() -> frozenset[str]:
    """All ends of paths that there are: `src/husk/a/b.py`, `husk/a/b.py`, `a/b.py`, `b.py`, and so for directories."""
    found: set[str] = set()
    for path in ROOT.iterdir():
        if path.name in TREES:
            for each in (path, *path.rglob("*")):
                parts = each.relative_to(ROOT).parts
                found.update("/".join(parts[at:]) for at in range(len(parts)) if "__pycache__" not in parts)
        elif path.is_file():
            found.add(path.name)
    return frozenset(found)


def is_there(word: str) -> bool:
    """Tell if there is such a file or directory, such a module, or such a public name."""
    if re.fullmatch(r"husk\.[\w.]+", word) and not word.endswith(".py"):
        if word.removeprefix("husk.") in husk.__all__:
            return True
        word = word.replace(".", "/")
    return word in tree() or f"{word}.py" in tree()


def words(text: str) -> Iterator[str]:
    """Yield the words in backticks that are paths or modules of ours; fenced blocks have tests of their own."""
    for code in _CODE.findall(_FENCE.sub("", text)):
        for word in code.split():
            word = word.removeprefix("./").partition("::")[0].rstrip(",")
            if _WORD.fullmatch(word):
                yield word.rstrip("/")


@pytest.mark.parametrize("page", PAGES)
def test_paths_on_a_page_are_there(page: str) -> None:
    assert {word for word in words((ROOT / page).read_text()) if word not in OTHERS and not is_there(word)} == set()


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of the pytest commands that choose tests by a part of their names."""
    indented = re.findall(r"^ {4,}(.*\bpytest .*)$", text, re.MULTILINE)
    for code in [*_CODE.findall(_FENCE.sub("", text)), *indented]:
        if re.search(r"\bpytest\s", code) and re.search(r"\s-k\s", code):
            yield shlex.split(code.partition("pytest")[2], comments=True)


def unknown(command: list[str]) -> set[str]:
    """Tell which of the parts of names after `-k` are in no name or id of a test in the command's paths."""
    at = command.index("-k")
    files = [file for path in command[:at] for file in sorted((ROOT / path).rglob("test_*.py")) or [ROOT / path]]
    told = "".join(
        file.relative_to(ROOT).as_posix() + "".join(re.findall(r'def test_\w+|"[a-z /]+"', file.read_text()))
        for file in files
    )
    return {word for word in re.split(r"\s+(?:or|and)\s+", command[at + 1]) if word not in told}


@pytest.mark.parametrize("page", PAGES)
def test_tests_that_a_page_chooses_are_there(page: str) -> None:
    assert [(command, unknown(command)) for command in commands((ROOT / page).read_text()) if unknown(command)] == []


def test_a_test_that_is_gone_is_noticed() -> None:
    page = """`pytest tests/unit/test_paths_in_pages.py
  -k "is_noticed or no_such_word"` `pytest tests/unit`

    X=1 pytest tests/unit/test_paths_in_pages.py -k paths  # as this
"""
    assert [unknown(command) for command in commands(page)] == [{"no_such_word"}, set()]


def test_words_that_are_paths_or_modules() -> None:
    page = """`api/a.py`, `b.py` `/etc/c.py` `husk.a.b` `pytest tests/unit/x` `https://a/b` `a/b:1` `src/husk/c.py::f`
```
`d.py`
```
"""
    assert list(words(page)) == ["api/a.py", "b.py", "husk.a.b", "tests/unit/x", "src/husk/c.py"]


def test_a_path_that_is_gone_is_noticed() -> None:
    assert [is_there(word) for word in ("husk.daemon", "husk.run", "api/edge/server.py", "engine/model")] == [True] * 4
    assert [is_there(word) for word in ("husk.no_such", "api/no_such.py", "engine/no_such")] == [False] * 3
