"""Builds as people look at them: what was built, how far it came, and what each step wrote. Pure."""

import re
from collections.abc import Iterable

import msgspec

from husk.builder.protocol.messages.common import Timestamp
from husk.builder.protocol.messages.control import BuildHistoryRecord, StatusResponse
from husk.dashboard.secret_words import Variable, variables

# Loaded with the first page of builds alone.

RUNNING, DONE, FAILED, CACHED, WAITING = "running", "done", "failed", "cached", "waiting"
# What a page shows of one step's output: its end.
MOST_OUTPUT = 64 << 10
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|.)")
_ARGUMENT = "build-arg:"
# What a record says of its build beside its arguments, and what a page calls it.
_SAID = {"filename": "Dockerfile", "target": "Target", "platform": "Platforms", "vcs:source": "Repository",
         "vcs:revision": "Revision", "vcs:localdir:context": "Directory"}  # fmt: skip


class BuildRow(msgspec.Struct, frozen=True, kw_only=True):
    """One build as a list shows it."""

    ref: str
    name: str
    # running, done, failed
    state: str
    begun: float
    # Seconds; None while it goes on.
    took: float | None
    steps: int
    completed: int
    cached: int
    warnings: int
    error: str


class BuildStep(msgspec.Struct, kw_only=True):
    """One step of a build."""

    id: str
    name: str = ""
    state: str = WAITING
    begun: float = 0.0
    took: float | None = None
    error: str = ""
    output: bytes = b""
    warnings: list[str] = []

    @property
    def text(self) -> str:
        """The step's output, without colours, and of lines that were written over only the last text."""
        plain = _ESCAPES.sub("", self.output.decode(errors="replace")).replace("\r\n", "\n")
        return "\n".join(line.rpartition("\r")[2] for line in plain.split("\n")).rstrip("\n")


def build(record: BuildHistoryRecord) -> BuildRow:
    begun, ended = seconds(record.created_at), seconds(record.completed_at)
    return BuildRow(
        ref=record.ref,
        name=name_of(record),
        state=RUNNING if not ended else FAILED if record.error else DONE,
        begun=begun,
        took=max(0.0, ended - begun) if ended else None,
        steps=record.total_steps,
        completed=record.completed_steps,
        cached=record.cached_steps,
        warnings=record.warnings,
        error=record.error.message if record.error else "",
    )


def name_of(record: BuildHistoryRecord) -> str:
    """The names that its image got; else what it was built from."""
    asked = [each.attrs.get("name", "") for each in record.exporters]
    if named := next(filter(None, [*asked, record.exporter_response.get("image.name", "")]), ""):
        return named.replace(",", ", ")
    attrs = record.frontend_attrs
    place = attrs.get("vcs:localdir:context") or attrs.get("context") or "."
    return f"{place.rstrip('/')}/{attrs.get('filename') or 'Dockerfile'}"


def said_of(record: BuildHistoryRecord) -> list[tuple[str, str]]:
    """(word, value) of what is known of it."""
    return [(word, record.frontend_attrs[key]) for key, word in _SAID.items() if record.frontend_attrs.get(key)]


def arguments(record: BuildHistoryRecord) -> list[Variable]:
    """Its build arguments; what looks like a secret is hidden."""
    given = ((key.removeprefix(_ARGUMENT), value) for key, value in record.frontend_attrs.items() if _ARGUMENT in key)
    return variables([f"{name}={value}" for name, value in given])


def steps(told: Iterable[StatusResponse]) -> list[BuildStep]:
    """The steps of a build in the order that they were told in, with what each wrote."""
    found: dict[str, BuildStep] = {}
    for response in told:
        for vertex in response.vertexes:
            step = found.setdefault(vertex.digest, BuildStep(id=vertex.digest))
            step.name, step.error = vertex.name, vertex.error
            begun, ended = seconds(vertex.started), seconds(vertex.completed)
            step.begun, step.took = begun, max(0.0, ended - begun) if ended and begun else None
            step.state = _state(bool(begun), bool(ended), vertex.cached, vertex.error)
        for log in response.logs:
            step = found.setdefault(log.vertex, BuildStep(id=log.vertex))
            step.output = (step.output + log.msg)[-MOST_OUTPUT:]
        for warning in response.warnings:
            step = found.setdefault(warning.vertex, BuildStep(id=warning.vertex))
            step.warnings = [*step.warnings, warning.short.decode(errors="replace")]
    return [step for step in found.values() if step.name]


def _state(begun: bool, ended: bool, cached: bool, error: str) -> str:
    if error:
        return FAILED
    if ended:
        return CACHED if cached else DONE
    return RUNNING if begun else WAITING


def seconds(moment: Timestamp | None) -> float:
    """Since 1970; 0 for none."""
    return moment.seconds + moment.nanos / 1e9 if moment is not None else 0.0
