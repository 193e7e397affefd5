"""The inputs that a build can be given: the arguments, secrets and SSH agents that a target uses. Pure."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from husk.builder.dockerfile.converted import UsedArg
from husk.builder.dockerfile.parse import Dockerfile
from husk.builder.dockerfile.stages import StagePlan
from husk.builder.dockerfile.words import WordRules, expand
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Exec, SecretMount, SshMount


class Asked(Struct, frozen=True):
    """A secret or an agent that the client has to have, or may have."""

    name: str
    required: bool
    start: int  # lines
    end: int


def used_args(
    dockerfile: Dockerfile,
    needed: Iterable[StagePlan],
    declared: Mapping[str, UsedArg],
    variables: Mapping[str, str],
    rules: WordRules,
) -> list[UsedArg]:
    """Those that the needed stages declare, and those before the first FROM that they or a FROM of theirs use."""
    global_args = {arg.name: (arg, one.origin.span) for one in dockerfile.global_args for arg in one.args}
    spans = {plan.span for plan in needed}
    waiting: set[str] = set()
    for stage in dockerfile.stages:
        if stage.begin.origin.span in spans:
            for text in (stage.begin.base, stage.begin.platform):
                waiting |= expand(text, variables, rules).used
            waiting |= {arg.name for one in stage.instructions for arg in getattr(one, "args", ())}
    found = dict(declared)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        if name in global_args and name not in declared:
            arg, span = global_args[name]
            found[name] = UsedArg(name, variables.get(name, ""), arg.description, span)
            if arg.default:
                waiting |= expand(arg.default, variables, rules).used - seen
    return sorted(found.values(), key=lambda one: one.span.start)


def secrets(graph: Graph) -> list[Asked]:
    found: dict[str, Asked] = {}
    for vertex in graph:
        body = vertex.operation.body
        if isinstance(body, Exec):
            place = vertex.locations[0]
            asked = [(one.kind.id, one.kind.optional) for one in body.mounts if isinstance(one.kind, SecretMount)]
            for id, optional in [*asked, *((one.id, one.optional) for one in body.secret_env)]:
                found.setdefault(id, Asked(id, not optional, place.start, place.end))
    return sorted(found.values(), key=lambda one: one.start)


def agents(graph: Graph) -> list[Asked]:
    found: dict[str, Asked] = {}
    for vertex in graph:
        body = vertex.operation.body
        if isinstance(body, Exec):
            place = vertex.locations[0]
            for one in body.mounts:
                if isinstance(one.kind, SshMount):
                    id = one.kind.id or "default"
                    found.setdefault(id, Asked(id, not one.kind.optional, place.start, place.end))
    return sorted(found.values(), key=lambda one: one.start)
