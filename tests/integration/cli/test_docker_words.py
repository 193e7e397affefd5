"""Words and flags of docker's own command are here, or stand in docs/cli.md as missing, with the reason."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pytest

from husk.cli.commands import husk

_PAGE = Path(__file__).parents[3] / "docs/cli.md"
_HEADING = "## What docker's command has and this one has not"
_WORD = re.compile(r"^  ([a-z][a-z-]*)\*? {2,}\S")
_FLAG = re.compile(r"^ {2,6}(?:-(\w), )?--([a-z0-9-]+)")
_NEWEST = 28
_PROGRAM = shutil.which("docker", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
# Groups whose words are mostly those of the top.
_AGAIN = ("builder", "container", "image", "system")


def _help(*words: str) -> str:
    done = subprocess.run([_PROGRAM or "docker", *words, "--help"], capture_output=True, text=True, check=True)
    return done.stdout


def _words(text: str) -> Iterator[str]:
    """Yield the commands that a help lists; plugins and global options are others."""
    section = ""
    for line in text.splitlines():
        if line.endswith("Commands:"):
            section = line
        elif line and not line.startswith(" "):
            section = ""
        elif section and (found := _WORD.match(line)):
            yield found[1]


def _flags(text: str) -> Iterator[str]:
    section = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            section = line
        if section == "Options:" and (found := _FLAG.match(line)):
            yield f"--{found[2]}"
            if found[1]:
                yield f"-{found[1]}"


def omitted() -> dict[str, str]:
    """Read the table of the page: what is not here, and why."""
    table = _PAGE.read_text().split(_HEADING)[1].split("\n## ")[0]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 2:
            for place in re.findall(r"`([^`]+)`", cells[0]):
                found[place] = cells[1]
    return found


@pytest.fixture(scope="module")
def theirs() -> dict[tuple[str, ...], set[str]]:
    """Docker's commands with their flags."""
    if _PROGRAM is None:
        pytest.skip("docker is not here")
    said = subprocess.run([_PROGRAM, "--version"], capture_output=True, text=True).stdout
    if not (version := re.search(r"version (\d+)", said)) or int(version[1]) < _NEWEST:
        pytest.skip(f"docker {_NEWEST} is not here")
    groups = {name: _help(name) for name in _words(_help())}
    leaves = [
        *((name,) for name, text in groups.items() if not list(_words(text))),
        *((name, word) for name, text in groups.items() for word in _words(text) if not _is_again(name, word)),
    ]
    with ThreadPoolExecutor(4) as threads:
        texts = threads.map(lambda words: groups[words[0]] if len(words) == 1 else _help(*words), leaves)
        return {words: set(_flags(text)) for words, text in zip(leaves, texts, strict=True)}


def _is_again(group: str, word: str) -> bool:
    """Tell if a word of a group is the same command here as that of the top, as `container run` is."""
    return group in _AGAIN and _ours((group, word)) is not None and _ours((group, word)) is _ours((word,))


def _ours(words: tuple[str, ...]) -> click.Command | None:
    command: click.Command | None = husk
    for word in words:
        if not isinstance(command, click.Group):
            return None
        command = command.get_command(click.Context(husk), word)
    return command


def _missing(theirs: dict[tuple[str, ...], set[str]]) -> set[str]:
    found = set()
    for words, flags in theirs.items():
        command = _ours(words)
        if command is None:
            found.add(" ".join(words) if _ours(words[:1]) else words[0])
            continue
        known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        # Docker's aliases take the flags of the word that they stand for.
        found |= {f"{' '.join(words)} {flag}" for flag in flags - known - {"--help"}}
    return found


def test_every_word_and_flag_is_here_or_named_with_its_reason(theirs):
    named = omitted()
    missing = {each for each in _missing(theirs) if not _covers(named, each)}
    assert missing == set()


def test_what_is_named_as_missing_is_missing(theirs):
    missing = _missing(theirs)
    assert {name for name in omitted() if not any(_is(name, each) for each in missing)} == set()


def _covers(named: dict[str, str], missing: str) -> bool:
    return any(_is(name, missing) for name in named)


def _is(name: str, missing: str) -> bool:
    """Tell if a name of the table means a word or flag; a flag alone means it everywhere."""
    return missing == name or missing.startswith(f"{name} ") or (name.startswith("-") and missing.endswith(f" {name}"))
