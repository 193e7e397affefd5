"""Questions about a Dockerfile (`docker build --call`), and what their answers look like. Pure.

A question is a name in the client's options (`requestid`). Its answer is metadata of a result without files: the same
for programs (`result.json`) and for people (`result.txt`), and the version of its form.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any

from husk.builder.dockerfile import stages
from husk.builder.dockerfile.converted import Converted, UsedArg
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.parse import Dockerfile
from husk.builder.dockerfile.rules import Span, Warning
from husk.builder.graph import ops
from husk.builder.graph.graph import SourceFile
from husk.text.digits import read_number

LINT, OUTLINE, TARGETS = "frontend.lint", "frontend.outline", "frontend.targets"
DESCRIBE = "frontend.subrequests.describe"
VERSION = "1.0.0"
_DESCRIPTIONS = {
    LINT: "Check a Dockerfile",
    OUTLINE: "List what a target of the build can be given",
    TARGETS: "List the targets of the build",
    DESCRIBE: "List the questions that are understood",
}
QUESTIONS = tuple(_DESCRIPTIONS)

Answer = dict[str, bytes]


def lint(source: SourceFile, warnings: Sequence[Warning], error: DockerfileError | None) -> Answer:
    document: dict[str, Any] = {
        "warnings": [_warning(one) for one in warnings],
        "sources": [
            {
                "filename": source.name,
                "data": _encoded(source.content),
                **({"definition": _definition(source.definition)} if source.definition else {}),
                "language": source.language,
            },
        ],
    }
    if error is not None:
        document["buildError"] = {"message": str(error), "location": _location(error.span)}
    text = "".join(_shown(one, source) for one in sorted(warnings, key=lambda one: one.span.start))
    failed = bool(warnings) or error is not None
    return {**_answer(document, text), "result.statuscode": b"1" if failed else b"0"}


def targets(source: SourceFile, dockerfile: Dockerfile) -> Answer:
    found = []
    for number, stage in enumerate(dockerfile.stages, 1):
        begin = stage.begin
        found.append(
            _without_empty(
                name=begin.name,
                default=number == len(dockerfile.stages),
                description=begin.description,
                base=begin.base,
                platform=begin.platform,
                location=_location(begin.origin.span),
            )
        )
    rows = [(_target_name(one), one.get("description", "")) for one in found]
    return _answer(
        {"targets": found, "sources": [_encoded(source.content)]}, table([("TARGET", "DESCRIPTION"), *rows], 1)
    )


def outlined(source: SourceFile, dockerfile: Dockerfile, target: str, result: Converted) -> Answer:
    stage = next((one.begin for one in dockerfile.stages if one.name and one.name == target.lower()), None)
    number = read_number(target, most=len(dockerfile.stages) - 1)
    stage = stage or dockerfile.stages[-1 if number is None else number].begin
    secrets, agents = stages.secrets(result.graph), stages.agents(result.graph)
    document = _without_empty(
        name=stage.name,
        description=stage.description,
        args=[_arg(one) for one in result.args],
        secrets=[_asked(one) for one in secrets],
        ssh=[_asked(one) for one in agents],
        sources=[_encoded(source.content)],
    )
    return _answer(document, _outline_text(document))


def described() -> Answer:
    document = [
        {
            "name": name,
            "version": VERSION,
            "type": "rpc",
            "description": description,
            "opts": [{"name": "target", "description": "Target build stage"}] if name == OUTLINE else [],
            "inputs": [],
            "metadata": [{"name": one, "description": ""} for one in ("result.json", "result.txt")],
            "refs": [],
        }
        for name, description in _DESCRIPTIONS.items()
    ]
    rows = [(name.removeprefix("frontend."), VERSION, text) for name, text in _DESCRIPTIONS.items()]
    return _answer(document, table([("NAME", "VERSION", "DESCRIPTION"), *rows], 1))


def table(rows: Sequence[Sequence[str]], between: int) -> str:
    """Columns as wide as their widest cell; the last one is as wide as it is."""
    widths = [max(len(row[column]) for row in rows) + between for column in range(len(rows[0]) - 1)]
    lines = ("".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)) for row in rows)
    return "".join(f"{line}\n" for line in lines)


def excerpt(source: SourceFile, span: Span) -> str:
    """Lines of a file with some around them."""
    lines = source.content.decode(errors="replace").split("\n")
    if not 1 <= span.start <= len(lines):
        return ""
    end = min(span.end, len(lines))
    around = 4 if span.start == end else 2
    first, last, count = span.start, end, 0
    while count < around:
        if first > 1:
            first, count = first - 1, count + 1
        if last < len(lines):
            last, count = last + 1, count + 1
        count += 1
    ruler = "-" * 20 + "\n"
    shown = (
        f" {number:3d} | {'>>>' if span.start <= number <= end else '   '} {lines[number - 1]}\n"
        for number in range(first, last + 1)
    )
    return f"{source.name}:{span.start}\n{ruler}{''.join(shown)}{ruler}"


# --- pieces ----------------------------------------------------------------------------------------------------------


def _answer(document: object, text: str) -> Answer:
    return {
        "result.json": json.dumps(document, indent=2).encode(),
        "result.txt": text.encode("utf-8", "replace"),
        "version": VERSION.encode(),
    }


def _without_empty(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _definition(data: bytes) -> dict[str, Any]:
    """Operations as Go writes their messages in JSON."""

    read = ops.Definition.decode(data)
    metadata = {
        digest: _without_empty(ignore_cache=one.ignore_cache, description=one.description, caps=one.caps)
        for digest, one in read.metadata.items()
    }
    locations: dict[str, object] = {digest: {} for digest in read.source.locations} if read.source else {}
    return {
        "def": [_encoded(operation) for operation in read.definition],
        "metadata": metadata,
        "Source": _without_empty(locations=locations),
    }


def _location(span: Span | None) -> dict[str, Any]:
    """A range for each line, as BuildKit has it."""
    if span is None:
        return {}
    lines: Iterable[int] = range(span.start, max(span.start, span.end) + 1)
    return {"ranges": [{"start": {"line": line}, "end": {"line": line}} for line in lines]}


def _warning(one: Warning) -> dict[str, Any]:
    return _without_empty(
        ruleName=one.rule,
        description=one.description,
        url=one.url,
        detail=one.message,
        location=_location(one.span),
    )


def _shown(one: Warning, source: SourceFile) -> str:
    page = f" - {one.url}" if one.url else ""
    return f"\nWARNING: {one.rule}{page}\n{one.message}\n{excerpt(source, one.span)}"


def _target_name(target: dict[str, Any]) -> str:
    mark = "(default)" if target.get("default") else ""
    return " ".join(filter(None, [target.get("name", ""), mark]))


def _arg(one: UsedArg) -> dict[str, Any]:
    return _without_empty(name=one.name, description=one.description, value=one.value, location=_location(one.span))


def _asked(one: stages.Asked) -> dict[str, Any]:
    return _without_empty(name=one.name, required=one.required, location=_location(Span(one.start, one.end)))


def _outline_text(document: dict[str, Any]) -> str:
    parts = []
    if "name" in document or "description" in document:
        rows = [("TARGET:", document.get("name", "(default)"))]
        rows += [("DESCRIPTION:", document["description"])] if "description" in document else []
        parts.append(table(rows, 1))
    if args := document.get("args"):
        cells = [(one["name"], one.get("value", ""), one.get("description", "")) for one in args]
        parts.append(table([("BUILD ARG", "VALUE", "DESCRIPTION"), *cells], 3))
    for key, title in (("secrets", "SECRET"), ("ssh", "SSH")):
        if asked := document.get(key):
            rows = [(one["name"], "true" if one.get("required") else "") for one in asked]
            parts.append(table([(title, "REQUIRED"), *rows], 3))
    return "".join(f"{part}\n" for part in parts)
