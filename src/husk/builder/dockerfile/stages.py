"""The stages of a Dockerfile and what each of them needs: its base, and those that it copies or mounts from.

A stage that nothing needs is not built, and its base image not looked at. An image or named context that is only copied
from is a stage without instructions.

The inputs that a build can be given: the arguments, secrets and SSH agents that a target uses.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from husk.builder.dockerfile import instructions as types
from husk.builder.dockerfile.converted import UsedArg
from husk.builder.dockerfile.errors import DockerfileError, suggestion
from husk.builder.dockerfile.parse import Dockerfile
from husk.builder.dockerfile.rules import Span
from husk.builder.dockerfile.words import WordRules, expand
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Exec, SecretMount, SshMount
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform, parse_platform

SCRATCH = "scratch"
SCAN_CONTEXT, SCAN_STAGE = "BUILDKIT_SBOM_SCAN_CONTEXT", "BUILDKIT_SBOM_SCAN_STAGE"
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


class StageStep(Struct, eq=False):
    instruction: types.Instruction
    sources: list["StagePlan | None"] = []  # as COPY --from or the mounts of RUN name them
    from_trigger: bool = False


class StagePlan(Struct, eq=False):
    name: str  # as it is shown
    base: str
    span: Span
    code: str = ""
    given_name: str = ""
    platform: Platform | None = None
    base_stage: "StagePlan | None" = None
    steps: list[StageStep] = []
    replaced: bool = False  # by a context of its name

    def replace(self) -> None:
        """A context of the client's has its name: that is all that the stage is."""
        self.replaced, self.base_stage, self.steps = True, None, []

    @property
    def needs(self) -> Iterator["StagePlan"]:
        if self.base_stage:
            yield self.base_stage
        for step in self.steps:
            yield from (source for source in step.sources if source)

    def need_of(self, other: "StagePlan") -> Span:
        """Return the lines of the first step that needs another stage; the lines of this stage if no step does."""
        spans = (step.instruction.origin.span for step in self.steps if other in step.sources)
        return next(spans, self.span)


class StagePlans:
    """All stages in the order of the file, and after them what they copy from besides."""

    def __init__(self, dockerfile: Dockerfile, variables: Mapping[str, str], rules: WordRules) -> None:
        self.stages: list[StagePlan] = []
        self._by_name: dict[str, StagePlan] = {}
        self._others: dict[str, StagePlan] = {}
        for number, stage in enumerate(dockerfile.stages):
            self._add(number, stage.begin, variables, rules)
        for plan, stage in zip(self.stages, dockerfile.stages, strict=True):
            plan.steps = [self.step(instruction, rules) for instruction in stage.instructions]
        _refuse_cycles(self.stages)
        if len(self.stages) == 1:
            # Alone it needs no name.
            self.stages[0].name = ""

    def _add(self, number: int, begin: types.From, variables: Mapping[str, str], rules: WordRules) -> None:
        span = begin.origin.span
        try:
            base = expand(begin.base, variables, rules).text
            if not base:
                raise DockerfileError(f"base name ({begin.base}) should not be blank")
            platform = _platform(begin.platform, variables, rules)
        except DockerfileError as error:
            raise error.at(span) from None
        plan = StagePlan(
            name=begin.name or f"stage-{number}",
            base=base,
            span=span,
            code=begin.origin.code,
            given_name=begin.name,
            platform=platform,
            base_stage=self._by_name.get(base.lower()) if base != SCRATCH else None,
        )
        self.stages.append(plan)
        if begin.name:
            self._by_name[begin.name] = plan

    def step(self, instruction: types.Instruction, rules: WordRules, *, from_trigger: bool = False) -> StageStep:
        span = instruction.origin.span
        sources: list[StagePlan | None] = []
        if isinstance(instruction, types.Copy) and instruction.source:
            if expand(instruction.source, {}, rules).text != instruction.source:
                message = "variable expansion is not supported for --from, define a new stage with FROM using ARG"
                raise DockerfileError(f"{message} from global scope as a workaround", span)
            sources = [self._source(instruction.source, span)]
        elif isinstance(instruction, types.Run):
            sources = [self._named(mount.source, span) if mount.source else None for mount in instruction.mounts]
        return StageStep(instruction, sources, from_trigger)

    def _source(self, name: str, span: Span) -> StagePlan:
        if not (name.isascii() and name.isdigit()):
            return self._named(name, span)
        if (stage := self._numbered(name)) is None:
            raise DockerfileError(f"invalid stage index {name}", span)
        return stage

    def _numbered(self, name: str) -> StagePlan | None:
        """Python refuses to convert thousands of digits: there are never so many stages."""
        known = name.isascii() and name.isdigit() and len(name) <= 9 and int(name) < len(self.stages)
        return self.stages[int(name)] if known else None

    def _named(self, name: str, span: Span) -> StagePlan:
        if found := self._by_name.get(name.lower()):
            return found
        return self._others.setdefault(name, StagePlan(name="", base=name, span=span))

    def target(self, name: str) -> StagePlan:
        if not name:
            return self.stages[-1]
        if found := self._by_name.get(name.lower()):
            return found
        if (stage := self._numbered(name)) is not None:
            return stage
        raise DockerfileError(f'target stage "{name}" could not be found{suggestion(name, self.names)}')

    def until(self, target: StagePlan) -> list[StagePlan]:
        """The stages of the file up to this one."""
        return self.stages[: self.stages.index(target) + 1]

    @property
    def names(self) -> list[str]:
        """Those that stages were given."""
        return [plan.given_name for plan in self.stages if plan.given_name]

    def needed_for(self, *targets: StagePlan) -> list[StagePlan]:
        """Return the targets and all that they need: first what is copied from besides stages, then stages in order."""
        wanted: set[StagePlan] = set()
        waiting = [*targets]
        while waiting:
            plan = waiting.pop()
            if plan not in wanted:
                wanted.add(plan)
                waiting += plan.needs
        return [plan for plan in (*self._others.values(), *self.stages) if plan in wanted]


def _platform(text: str, variables: Mapping[str, str], rules: WordRules) -> Platform | None:
    if not text:
        return None
    found = expand(text, variables, rules)
    if not found.text:
        missing = "".join(suggestion(name, variables) for name in sorted(found.missing))
        raise DockerfileError(f"empty platform value from expression {text}{missing}")
    try:
        return parse_platform(found.text)
    except InvalidParameter as error:
        raise DockerfileError(f"failed to parse platform {text}: {error}") from None


def _refuse_cycles(stages: list[StagePlan]) -> None:
    """Walk from every stage to what it needs, each once; who is met on the way to itself is part of a circle."""
    done: set[StagePlan] = set()
    for start in stages:
        way: dict[StagePlan, Iterator[StagePlan]] = {start: start.needs} if start not in done else {}
        while way:
            plan, needs = next(reversed(way.items()))
            following = next((need for need in needs if need not in done), None)
            if following is None:
                done.add(plan)
                del way[plan]
            elif following in way:
                raise DockerfileError(
                    f"circular dependency detected on stage: {following.name}", plan.need_of(following)
                )
            else:
                way[following] = following.needs


def scans_context(target: StagePlan, variables: Mapping[str, str], build_args: Mapping[str, str]) -> bool:
    """True if the context is to be scanned for an SBOM: `BUILDKIT_SBOM_SCAN_CONTEXT`, which the target says."""
    return _is_wanted(target, SCAN_CONTEXT, variables, build_args)


def stages_to_scan(
    target: StagePlan, needed: Iterable[StagePlan], variables: Mapping[str, str], build_args: Mapping[str, str]
) -> list[StagePlan]:
    """List the stages that the target needs and that are to be scanned for an SBOM, besides the target itself.

    `ARG BUILDKIT_SBOM_SCAN_STAGE=true` in a stage is for that stage, before the first FROM or as `--build-arg` for all;
    a list of names is for those stages.
    """
    others = [plan for plan in needed if plan is not target and plan.code]
    return [plan for plan in others if _is_wanted(plan, SCAN_STAGE, variables, build_args)]


def _is_wanted(plan: StagePlan, name: str, variables: Mapping[str, str], build_args: Mapping[str, str]) -> bool:
    value = build_args.get(name, variables.get(name, ""))
    for step in plan.steps:
        if isinstance(step.instruction, types.ArgInstruction) and name not in build_args:
            said = [arg.default for arg in step.instruction.args if arg.name == name and arg.default is not None]
            value = said[-1].strip("\"'") if said else value
    if value in _TRUE or value in ("", *_FALSE):
        return value in _TRUE
    return plan.name in value.split(",")


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
