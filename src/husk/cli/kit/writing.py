"""Writing, at once; when nobody reads any more the program ends without a word, as others do.

What is written for people, `say` and `complain`, has no sequences in it that a terminal obeys: much of it comes from
images, labels, containers' output and other engines. What a container itself writes is passed on as it is, by `write`.
"""

import json
import os
from typing import Any, NoReturn

from husk.cli.kit.words import json_text, visible

# What a shell says of a program that SIGPIPE ended.
_NOBODY_READS = 141


def say(text: str = "", *, end: str = "\n", exact: bool = False) -> None:
    """A line on stdout; an `exact` one is for a program, where one reads."""
    shown = text if exact and not at_terminal() else visible(text)
    try:
        data = f"{shown}{end}".encode(errors="surrogateescape")
    except UnicodeEncodeError:
        data = f"{shown}{end}".encode(errors="replace")  # half a letter, which JSON may have
    write(1, data)


def complain(text: str) -> None:
    """A line on stderr."""
    write(2, f"{visible(text)}\n".encode(errors="surrogateescape"))


def write(descriptor: int, data: bytes) -> None:
    """All of it, to stdout (1) or stderr (2)."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:
        nobody_reads()
    except OSError as error:
        raise SystemExit(f"husk: cannot write: {error.strerror}") from None


def nobody_reads() -> NoReturn:
    raise SystemExit(_NOBODY_READS)


def document(value: Any) -> None:
    """One document: for people in lines, for programs in one."""
    say(encoded(value, indent=2 if at_terminal() else None))


def line(value: Any) -> None:
    """A document in one line: of many."""
    say(encoded(value))


def encoded(value: Any, indent: int | None = None) -> str:
    """A document as JSON: in one line, or in lines that begin so far to the right."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json_text(json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, default=_builtin))


def _builtin(value: Any) -> Any:
    """A moment, or a record, as JSON has it."""
    # A door: msgspec, which a short command would wait longer for than for its answer.
    import msgspec

    return msgspec.to_builtins(value)


def at_terminal(descriptor: int = 1) -> bool:
    return os.isatty(descriptor)
