"""Variables and labels of a container to be: from the line, from files, and from our own environment."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from husk.errors import InvalidParameter


def environment(files: Sequence[str], given: Sequence[str], ours: Mapping[str, str] = os.environ) -> list[str]:
    """`NAME=value` for each. A name alone takes our value; where we have none it is left out."""
    found = [entry for file in files for entry in _lines(file, "env-file")]
    for entry in (*found, *given):
        name = entry.partition("=")[0]
        if not name or (entry in found and any(letter.isspace() for letter in name)):
            raise InvalidParameter(f"invalid environment variable: {entry!r}: expected NAME=VALUE or NAME")
    return [whole for entry in (*found, *given) if (whole := _with_value(entry, ours)) is not None]


def labels(files: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in (*(entry for file in files for entry in _lines(file, "label-file")), *given):
        name, _, value = entry.partition("=")
        if not name:
            raise InvalidParameter(f"invalid label: {entry!r}: expected NAME=VALUE")
        found[name] = value
    return found


def _with_value(entry: str, ours: Mapping[str, str]) -> str | None:
    if "=" in entry:
        return entry
    return f"{entry}={ours[entry]}" if entry in ours else None


def _lines(file: str, flag: str) -> Iterator[str]:
    """Lines that say something: not those that are empty, and not comments."""
    try:
        text = Path(file).read_text()
    except OSError as error:
        raise InvalidParameter(f"--{flag}: open {file}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"--{flag}: {file} is not text in UTF-8") from None
    for line in text.splitlines():
        line = line.lstrip()
        if line and not line.startswith("#"):
            yield line
