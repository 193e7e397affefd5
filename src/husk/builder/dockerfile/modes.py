"""`--chmod`: octal, or symbolic as `chmod` takes it."""

import re

from husk.builder.dockerfile.errors import DockerfileError

_SYMBOLIC = re.compile(r"[ugoa]*(?:[-+=](?:[rwxXst]*|[ugo]))+")


def parse(text: str) -> tuple[int | None, str]:
    """The mode as a number, or else as text."""
    if not text:
        return None, ""
    if re.fullmatch(r"[0-7]+", text):
        number = int(text, 8)
        if number <= 0o7777:
            return number, ""
    elif all(_SYMBOLIC.fullmatch(clause) for clause in text.split(",")):
        return None, text
    raise DockerfileError(f"invalid chmod parameter: '{text}'. it should be octal string and between 0 and 07777")
