"""The classic builder's own part in converting a Dockerfile: its rules, and steps that can be told."""

from msgspec import Struct

from husk.builder.dockerfile import instructions as types
from husk.builder.dockerfile.converted import ShownStep
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.lines import split
from husk.builder.dockerfile.parse import NO_STAGE, Dockerfile, parse
from husk.builder.dockerfile.rules import Span
from husk.builder.dockerfile.stages import StageStep
from husk.builder.dockerfile.state import StageState, prepared_volumes
from husk.builder.graph.graph import Graph, Location
from husk.builder.graph.operations import Edge


def read(text: str) -> Dockerfile:
    """The file, or what is wrong with it in dockerd's words."""
    try:
        split(text)
        return parse(text)
    except DockerfileError as error:
        raise DockerfileError(_told(error), error.span) from None


def _told(error: DockerfileError) -> str:
    has_place = str(error) != error.message
    return str(error) if has_place or error.message == NO_STAGE else f"failed to parse Dockerfile: {error}"


def until(dockerfile: Dockerfile, target: str) -> tuple[list[str], int, list[str]]:
    """The instructions up to the first FROM, the number of all that lead to a target, and arguments before FROM."""
    names = [stage.begin.name for stage in dockerfile.stages]
    number = len(names) - 1
    if target.lower() in names and target:
        number = names.index(target.lower())
    elif target.isascii() and target.isdigit() and len(target) <= 9 and int(target) < len(names):
        number = int(target)
    elif target:
        raise DockerfileError(f'target stage "{target}" could not be found')
    first = [*dockerfile.global_args, dockerfile.stages[0].begin]
    count = sum(1 + len(stage.instructions) for stage in dockerfile.stages[: number + 1])
    args = [arg.name for one in dockerfile.global_args for arg in one.args]
    return [one.origin.code for one in first], count + len(dockerfile.global_args), args


def not_from(name: str, reason: str) -> str:
    """An image that is not there to be copied from."""
    return f"invalid from flag value {name}: {reason}"


def note(state: StageState, instruction: types.Instruction) -> str:
    """Return the note that a client gets before an instruction is carried out; empty for none."""
    before = state.config.healthcheck
    if isinstance(instruction, types.HealthCheck) and before and before.test and before.test[0] != "NONE":
        return f"Note: overriding previous HEALTHCHECK: [{' '.join(before.test)}]\n"
    return ""


def prepare_volumes(graph: Graph, state: StageState, instruction: types.Volume) -> None:
    """Volumes are directories: that is found out at once, and the next command begins with it."""
    prepared_volumes(graph, state, instruction.origin.span)


# --- steps -----------------------------------------------------------------------------------------------------------


def begin(graph: Graph, state: StageState, stage: int, made: int, base: str, base_stage: int | None) -> ShownStep:
    """FROM; `made` tells how many vertices there were before it."""
    return ShownStep(
        state.plan.code,
        "FROM",
        _place(state.plan.span),
        stage=stage,
        result=state.root,
        vertices=tuple(_vertices(graph, made)),
        base=base,
        base_stage=base_stage,
    )


class Before(Struct, frozen=True):
    """The state before an instruction: the counts of vertices and of lines of history, and the file system."""

    made: int
    told: int
    root: Edge | None


def shown(graph: Graph, state: StageState, step: StageStep, stage: int, note: str, before: Before) -> ShownStep:
    """An instruction that has been carried out."""
    instruction, origin = step.instruction, step.instruction.origin
    keyword = origin.keyword.upper()
    written = "\n".join(line.created_by for line in state.image.history[before.told :])
    vertices = _vertices(graph, before.made)
    if state.root and state.root != before.root and state.root.digest not in vertices:
        vertices.append(state.root.digest)  # another stage does the same
    copies = isinstance(instruction, types.Copy | types.Add)
    return ShownStep(
        origin.code,
        keyword,
        _place(state.plan.span if step.from_trigger else origin.span),
        stage=stage,
        # An argument counts where it is used.
        written=origin.code if keyword in ("ARG", "ONBUILD") else written,
        result=state.root,
        vertices=tuple(vertices),
        note=note,
        from_trigger=step.from_trigger,
        from_context=copies and not step.sources,
    )


def label(state: StageState, stage: int, name: str, value: str) -> ShownStep:
    """A label that the client asks for: the last instructions of all."""
    code = f"LABEL {name}={value}"
    return ShownStep(code, "LABEL", _place(state.plan.span), stage=stage, written=code, result=state.root)


def _vertices(graph: Graph, count: int) -> list[str]:
    """Return the digests of vertices after the first `count` that are said to be made here: contexts are not."""
    return [vertex.digest for vertex in graph.added_since(count) if vertex.locations]


def _place(span: Span) -> Location:
    return Location(0, span.start, span.end)
