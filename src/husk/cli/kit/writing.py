"""How is something written? At once, and when nobody reads any more the program ends without a word, as others do."""

import json
import os
from typing import Any, NoReturn

# What a shell says of a program that SIGPIPE ended.
_NOBODY_READS = 141


def say(text: str = "", *, end: str = "\n") -> None:
    """A line on stdout."""
    write(1, f"{text}{end}".encode(errors="surrogateescape"))


def complain(text: str) -> None:
    """A line on stderr."""
    write(2, f"{text}\n".encode(errors="surrogateescape"))


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
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, default=_builtin)


def _builtin(value: Any) -> Any:
    """A moment, or a record, as JSON has it."""
    import msgspec

    return msgspec.to_builtins(value)


def at_terminal(descriptor: int = 1) -> bool:
    return os.isatty(descriptor)
