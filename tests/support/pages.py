"""The reading of a page of docs/howto: its fenced blocks, in the words behind the three marks.

    ```console                      commands behind `$ `, and what each of them prints; `...` stands for anything
    ```console ends with 1          the same, for commands that fail with this status
    ```console at a terminal        with a terminal: lines behind `/ # ` are typed into the container
    ```console in another terminal  a command that goes on until the end of the page
    ```console not run: REASON      for readers alone
    ```yaml compose.yaml            a file with this name, written before the next command

A command without any lines below it has to succeed, and what it prints is not looked at. A command whose last line is
`^C` is stopped by ctrl-c when all lines above it have come. `> ` goes on with the command of the line before.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Kind = Literal["run", "terminal", "background", "file", "unrun"]

_FENCE = re.compile(r"^```(\S+)[ ]?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STATUS = re.compile(r"ends with (\d+)")
_WORDS: dict[str, Kind] = {"": "run", "at a terminal": "terminal", "in another terminal": "background"}


class Command(NamedTuple):
    """One command, with the lines that it prints."""

    line: int
    text: str
    printed: list[str]

    @property
    def stopped(self) -> bool:
        """By ctrl-c."""
        return self.printed[-1:] == ["^C"]


class Block(NamedTuple):
    """A fenced block: commands with their exit status, or a file with its name, or the reason why it is not run."""

    kind: Kind
    line: int
    commands: list[Command]
    status: int = 0
    name: str = ""
    text: str = ""


def blocks(page: str) -> Iterator[Block]:
    """Yield the steps of a page. ValueError for a block that says something else than the words above."""
    for found in _FENCE.finditer(page):
        language, words, text = found[1], found[2].strip(), found[3]
        line = page.count("\n", 0, found.start()) + 1
        if language != "console":
            if words:
                yield Block("file", line, [], name=words, text=text)
            continue
        if words.startswith("not run: "):
            yield Block("unrun", line, list(_commands(text, line)), text=words.removeprefix("not run: "))
        elif status := _STATUS.fullmatch(words):
            yield Block("run", line, list(_commands(text, line)), int(status[1]))
        elif words in _WORDS:
            yield Block(_WORDS[words], line, list(_commands(text, line)))
        else:
            raise ValueError(f"line {line}: console {words!r} is no kind of block")


def _commands(text: str, line: int) -> Iterator[Command]:
    command: Command | None = None
    for number, each in enumerate(text.splitlines(), line + 1):
        if each.startswith("$ "):
            if command is not None:
                yield command
            command = Command(number, each.removeprefix("$ "), [])
        elif command is None:
            raise ValueError(f"line {number}: a block begins with a command behind `$ `")
        elif each.startswith("> ") and not command.printed:
            command = command._replace(text=f"{command.text}\n{each.removeprefix('> ')}")
        else:
            command.printed.append(each)
    if command is None:
        raise ValueError(f"line {line}: a block without a command")
    yield command


def pattern(printed: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for these lines as a whole; a line `...` is any number of lines, `...` in a line any words."""
    text = ""
    for line in printed:
        if line == "^C":
            continue
        if line.strip() == "...":
            text += r"(?:[^\n]*\n)*?"
        else:
            # How wide columns are depends on what is in them.
            pieces = [r"[ \t]+".join(map(re.escape, re.split(r"[ \t]+", piece))) for piece in line.split("...")]
            text += r"[^\n]*".join(pieces) + r"[ \t]*\n"
    return re.compile(text)
