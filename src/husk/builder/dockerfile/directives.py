"""Parser directives: `# syntax=`, `# escape=` and `# check=` in the first lines of a file.

They stand before everything else. The first line that is none of them (an empty one, another comment, an instruction)
ends them, and what looks like one further down is a comment.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.rules import Span
from husk.text import documents

KNOWN = ("syntax", "escape", "check")
ESCAPES = ("\\", "`")
_FORM = re.compile(r"([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(\S.*)")


class Directive(Struct, frozen=True):
    name: str
    value: str
    line: int


def read(text: str, *, comment: str = "#", first_line: int = 1) -> Iterator[Directive]:
    """The directives at the beginning of a file."""
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), first_line):
        directive = parse(line.strip(), number, comment=comment)
        if directive is None:
            return
        if directive.name in seen:
            raise DockerfileError(f"only one {directive.name} parser directive can be used", Span(number, number))
        seen.add(directive.name)
        yield directive


def parse(line: str, number: int, *, comment: str = "#") -> Directive | None:
    if not line.startswith(comment):
        return None
    found = _FORM.match(line[len(comment) :].lstrip())
    if found is None or found[1].lower() not in KNOWN:
        return None
    return Directive(found[1].lower(), found[2].rstrip(), number)


def escape_of(directives: list[Directive]) -> str:
    for directive in directives:
        if directive.name != "escape":
            continue
        if directive.value not in ESCAPES:
            message = f"invalid escape token '{directive.value}' does not match ` or \\"
            raise DockerfileError(message, Span(directive.line, directive.line))
        return directive.value
    return "\\"


def syntax_of(text: str) -> Directive | None:
    """Find the directive that asks for a frontend; a file that is no Dockerfile has it as `// syntax=` or in JSON."""
    first_line = 1
    if text.startswith("#!"):
        _, _, text = text.partition("\n")
        first_line = 2
    for comment in ("#", "//"):
        try:
            for directive in read(text, comment=comment, first_line=first_line):
                if directive.name == "syntax":
                    return directive
        except DockerfileError:
            # Told when the file is parsed.
            return None
    return _syntax_of_json(text, first_line)


def _syntax_of_json(text: str, line: int) -> Directive | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        document = documents.decode(text, dict[str, object])
    except documents.MalformedDocument:
        return None
    value = document.get("syntax")
    return Directive("syntax", value, line) if isinstance(value, str) else None
