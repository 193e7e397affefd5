"""From a Dockerfile to a graph of operations, and the image that its result will be.

    result = await convert(text, options, sources)
    result.root      the edge of the file system, None if there is nothing in it
    result.image     its configuration, without layers: what the results know of them comes after the build

Which paths of the build context are used is known only at the end, and is part of the operation that fetches it: so the
conversion is done twice, which costs little, because images are asked about once.
"""

import posixpath
from collections.abc import Sequence

import msgspec

from husk.builder.dockerfile import classic, contexts
from husk.builder.dockerfile import instructions as types
from husk.builder.dockerfile.checks import Checks, StageChecks, check_bases, check_text, options_of
from husk.builder.dockerfile.configure import configure
from husk.builder.dockerfile.converted import Converted, ShownStep, UsedArg
from husk.builder.dockerfile.copy import CopyConverter, owner_of
from husk.builder.dockerfile.errors import DockerfileError, suggestion
from husk.builder.dockerfile.options import (
    BaseImage,
    NamedContext,
    Options,
    RemoteContext,
    Sources,
    StageAnswer,
    StageQuestion,
)
from husk.builder.dockerfile.parse import parse, parse_trigger
from husk.builder.dockerfile.run import RunConverter
from husk.builder.dockerfile.stages import (
    SCRATCH,
    StagePlan,
    StagePlans,
    StageStep,
    scans_context,
    stages_to_scan,
    used_args,
)
from husk.builder.dockerfile.state import (
    DEFAULT_PATH,
    LARGEST_IMAGE,
    StageState,
    copy_of,
    empty_image,
    locations,
    shown,
    too_large,
)
from husk.builder.dockerfile.variables import NOT_IN_ENVIRONMENT, predefined, with_global_args
from husk.builder.dockerfile.words import WordRules
from husk.builder.graph.graph import Graph, SourceFile
from husk.builder.graph.operations import Edge, Files, Operation, Source, has_nul
from husk.builder.store.file_actions import NONE, FileAction, MakeDirectory
from husk.engine.model.image import ImageConfig
from husk.errors import HuskError
from husk.registry import reference
from husk.registry.manifest import Platform
from husk.text.encoded import encoded

# What a name that is not there may have been meant to be.
COMMON_IMAGES = ("alpine", "busybox", "centos", "debian", "fedora", "golang", "ubuntu")
COUNTED = (types.Copy, types.Add, types.Run, types.Workdir)
_encoder = msgspec.json.Encoder()


async def convert(
    text: str,
    options: Options,
    sources: Sources,
    *,
    file_name: str = "Dockerfile",
    checks: Checks | None = None,
) -> Converted:
    """`checks` has the warnings also of a file that cannot be converted."""
    dockerfile = parse(text)
    if not dockerfile.stages:
        raise DockerfileError("dockerfile contains no stages to build")
    rules = WordRules(escape=dockerfile.escape)
    target_name = options.target or dockerfile.stages[-1].name
    given = predefined(options.platform, options.build_platform, options.build_args, target_name)
    variables = with_global_args(given, dockerfile.global_args, options.build_args, rules)
    checks = checks or Checks()
    checks.options = options_of(dockerfile, options.check)
    check_text(dockerfile, checks)
    check_bases(dockerfile, given, variables, checks)
    plans = StagePlans(dockerfile, variables, rules)
    target = plans.target(options.target)
    targets = plans.stages if options.all_stages else plans.until(target) if options.classic else [target]
    bases = await _Bases(plans, options, sources, rules).resolve(targets)
    needed = plans.needed_for(*targets)
    files = [SourceFile(file_name, text.encode("utf-8", "surrogateescape"))]
    paths: set[str] = set()
    for _ in range(2):
        graph = Graph(files)
        context = sources.main_context([] if "/" in paths else sorted(paths))
        conversion = _Conversion(graph, context, bases, variables, options, rules, checks)
        for plan in needed:
            conversion.stage(plan)
        paths = conversion.context_paths
    state = conversion.states[target]
    conversion.label(state)
    checks.raise_if_asked()
    _check(graph, state.image)
    args = used_args(dockerfile, needed, conversion.args, variables, rules)
    scanned = stages_to_scan(target, needed, variables, options.build_args)
    extras = {plan.name: conversion.states[plan].root for plan in scanned}
    if scans_context(target, variables, options.build_args):
        extras["context"] = conversion.main_context()
    return Converted(graph, state.root, state.image, checks.warnings, conversion.steps, args, extras)


def _check(graph: Graph, image: ImageConfig) -> None:
    if len(encoded(_encoder, image)) > LARGEST_IMAGE:
        raise too_large()
    if has_nul(image) or any(has_nul(vertex.operation) for vertex in graph):
        raise DockerfileError("the Dockerfile has a NUL where only text can stand")


class _Bases:
    """Finds out what stages begin with: images by their digests, named contexts, and the triggers that they bring."""

    def __init__(self, plans: StagePlans, options: Options, sources: Sources, rules: WordRules) -> None:
        self._plans = plans
        self._options = options
        self._sources = sources
        self._rules = rules
        self._found: dict[StagePlan, BaseImage | NamedContext | None] = {}
        self._triggered: set[StagePlan] = set()

    async def resolve(self, targets: Sequence[StagePlan]) -> dict[StagePlan, BaseImage | NamedContext | None]:
        # Triggers may copy from stages and images that nothing else needs.
        while missing := [plan for plan in self._plans.needed_for(*targets) if plan not in self._found]:
            self._found.update(dict.fromkeys(missing))
            wanted = {plan: one for plan in missing if (one := self._wanted(plan)).contexts or one.image}
            found = await self._sources.look_up(list(wanted.values())) if wanted else []
            for plan, what in zip(wanted, found, strict=True):
                if what.name and what.name == plan.given_name:
                    plan.replace()
            # Of stages that are replaced nobody needs what they began with.
            needed = set(self._plans.needed_for(*targets))
            self._found.update(
                (plan, self._read(plan, one)) for plan, one in zip(wanted, found, strict=True) if plan in needed
            )
            for plan in missing:
                if plan in needed:
                    self._add_triggers(plan)
        return self._found

    def _wanted(self, plan: StagePlan) -> StageQuestion:
        names = (plan.given_name, "" if plan.base_stage else plan.base)
        contexts = [name for name in names if name and name.lower() not in (SCRATCH, "context")]
        image = "" if plan.base_stage or plan.base == SCRATCH else plan.base
        return StageQuestion(contexts, image, plan.platform or self._options.platform)

    def _read(self, plan: StagePlan, found: StageAnswer) -> BaseImage | NamedContext | None:
        if found.error:
            meant = suggestion(plan.base, [*self._plans.names, *COMMON_IMAGES])
            if self._options.classic:
                raise DockerfileError(found.error if plan.code else classic.not_from(plan.base, found.error), plan.span)
            try:
                reference.parse(plan.base)
            except HuskError as error:
                raise DockerfileError(f'failed to parse stage name "{plan.base}": {error}', plan.span) from None
            raise DockerfileError(f"{plan.base}: {found.error}{meant}", plan.span)
        return found.context or found.image

    def _add_triggers(self, plan: StagePlan) -> None:
        if plan in self._triggered or plan.replaced:
            return
        self._triggered.add(plan)
        if plan.base_stage:
            steps = plan.base_stage.steps
            triggers = [step.instruction.trigger for step in steps if isinstance(step.instruction, types.OnBuild)]
        else:
            found = self._found[plan]
            config = found.document.config if found and found.document else None
            # What is only copied from begins nothing.
            triggers = list(config.on_build or []) if config and plan.code else []
        try:
            added = [self._plans.step(parse_trigger(text), self._rules, from_trigger=True) for text in triggers]
        except DockerfileError as error:
            raise DockerfileError(error.message, plan.span) from None
        plan.steps = added + plan.steps


class _Conversion:
    def __init__(
        self,
        graph: Graph,
        context: Source | RemoteContext,
        bases: dict[StagePlan, BaseImage | NamedContext | None],
        variables: dict[str, str],
        options: Options,
        rules: WordRules,
        checks: Checks,
    ) -> None:
        self._graph = graph
        self._context = context
        self._bases = bases
        self._variables = variables
        self._options = options
        self._rules = rules
        self._checks = checks
        self.states: dict[StagePlan, StageState] = {}
        self.context_paths: set[str] = set()
        self.args: dict[str, UsedArg] = {}
        self.steps: list[ShownStep] = []  # those of the classic builder
        self._numbers: dict[StagePlan, int] = {}

    def stage(self, plan: StagePlan) -> None:
        state = self._begin(plan)
        self.states[plan] = state
        checks = StageChecks(self._checks)
        for step in plan.steps:
            state.origin = step.instruction.origin
            before = classic.Before(len(self._graph), len(state.image.history), state.root)
            note = classic.note(state, step.instruction) if self._options.classic else ""
            try:
                if not step.from_trigger:
                    checks.before(step.instruction)
                self._step(state, step)
                if not step.from_trigger:
                    checks.after(step.instruction)
            except DockerfileError as error:
                raise error.at(plan.span if step.from_trigger else step.instruction.origin.span) from None
            if self._options.classic:
                self.steps.append(classic.shown(self._graph, state, step, self._numbers[plan], note, before))

    def label(self, state: StageState) -> None:
        """Set the client's labels for the image. The classic builder has instructions for that."""
        state.config.labels.update(self._options.labels)
        if self._options.classic:
            number, labels = self._numbers[state.plan], sorted(self._options.labels.items())
            self.steps += [classic.label(state, number, *pair) for pair in labels]

    def _begin(self, plan: StagePlan) -> StageState:
        number, made = len(self._numbers), len(self._graph)
        self._numbers[plan] = number
        state = self._based(plan)
        if self._options.classic and plan.code:
            found = self._bases[plan]
            base = found.id if isinstance(found, BaseImage) else ""
            below = self._numbers[plan.base_stage] if plan.base_stage else None
            self.steps.append(classic.begin(self._graph, state, number, made, base, below))
        return state

    def _based(self, plan: StagePlan) -> StageState:
        base = self.states.get(plan.base_stage) if plan.base_stage else None
        found = self._bases[plan]
        image_is_pulled = base is None and isinstance(found, BaseImage)
        counted = sum(isinstance(step.instruction, COUNTED) for step in plan.steps)
        state = StageState(
            plan=plan,
            root=None,
            platform=plan.platform or (base.platform if base else self._options.platform),
            image=empty_image(plan.platform or self._options.platform),
            rules=self._rules,
            checks=self._checks,
            created=self._options.created,
            shows_platform=self._options.several_platforms,
            ignore_cache=self._options.no_cache or plan.given_name in self._options.no_cache_stages,
            total=counted + image_is_pulled,
        )
        if isinstance(found, NamedContext):
            name = f"[context {plan.given_name if plan.replaced else plan.base}]"
            if found.source:
                name += " load from client" if found.source.identifier.startswith("local://") else ""
                state.root = self._graph.add(Operation(found.source, [], state.platform), name=name)
            if found.document:
                state.image = copy_of(found.document)
        elif base:
            state.root, state.image, state.args = base.root, copy_of(base.image), list(base.args)
            state.directory_was_set = base.directory_was_set
        elif isinstance(found, BaseImage):
            state.image = copy_of(found.document)
            state.root = self._from(state, found)
            self._check_platform(state, found)
        self._inherit(state)
        return state

    def _from(self, state: StageState, found: BaseImage) -> Edge | None:
        name = state.step_name(f"FROM {found.reference}")
        if not found.document.rootfs.diff_ids:
            return None
        source = Source(f"docker-image://{found.reference}")
        operation = Operation(source, [], state.platform)
        return self._graph.add(operation, name=name, locations=locations(state.plan.span))

    def _check_platform(self, state: StageState, found: BaseImage) -> None:
        here = Platform(found.document.architecture, found.document.os)
        wanted = state.platform
        if (here.os, here.architecture) != (wanted.os, wanted.architecture):
            message = f'Base image {state.plan.base} was pulled with platform "{here}", expected "{wanted}"'
            message += " for current build"
            self._checks.warn("InvalidBaseImagePlatform", None, message, state.plan.span)

    def _inherit(self, state: StageState) -> None:
        state.image.created = ""
        state.configure(on_build=None, image="")
        config = state.config
        names = {entry.partition("=")[0] for entry in config.env}
        if "PATH" not in names:
            config.env.append(f"PATH={DEFAULT_PATH}")
        for entry in config.env:
            name, _, value = entry.partition("=")
            state.env[name] = value
        if state.plan.base_stage:
            # Arguments of the stage below are seen here, too.
            for name, value in self.states[state.plan.base_stage].args:
                state.env.setdefault(name, value)

    # --- instructions ------------------------------------------------------------------------------------------------

    def _step(self, state: StageState, step: StageStep) -> None:
        instruction = step.instruction
        match instruction:
            case types.Copy() | types.Add():
                self._copy(state, step, instruction)
            case types.Run():
                self._run(state, step, instruction)
            case types.Workdir():
                self._workdir(state, step, instruction)
            case types.ArgInstruction():
                self._arg(state, instruction)
            case _:
                configure(state, instruction)
                if self._options.classic and isinstance(instruction, types.Volume):
                    classic.prepare_volumes(self._graph, state, instruction)

    def main_context(self) -> Edge:
        return contexts.add(self._graph, self._context)

    def _stage_root(self, plan: StagePlan, name: str, state: StageState) -> Edge | None:
        if plan not in self.states:
            here = state.plan.name or "the only one"
            message = f'cannot copy from stage "{name}", it needs to be defined before current stage "{here}"'
            raise DockerfileError(message)
        return self.states[plan].root

    def _copy(self, state: StageState, step: StageStep, instruction: types.Copy | types.Add) -> None:
        copier = CopyConverter(self._graph, state, instruction, classic=self._options.classic)
        if step.sources and isinstance(instruction, types.Copy):
            assert step.sources[0]
            source = self._stage_root(step.sources[0], instruction.source, state)
        else:
            self.context_paths.update(copier.context_paths)
            self._check_ignored(instruction, copier.context_paths)
            source = self.main_context() if copier.context_paths else None
        copier.carry_out(source, from_trigger=step.from_trigger)

    def _check_ignored(self, instruction: types.Copy | types.Add, paths: list[str]) -> None:
        ignore = self._options.ignore
        if ignore is None or ignore.brings_back:
            return
        for path in paths:
            if path != "/" and ignore.leaves_out(path.lstrip("/")):
                keyword = instruction.origin.keyword.capitalize()
                message = f'Attempting to {keyword} file "{path.lstrip("/")}" that is excluded by .dockerignore'
                self._checks.warn("CopyIgnoredFile", instruction.origin, message)

    def _run(self, state: StageState, step: StageStep, instruction: types.Run) -> None:
        runner = RunConverter(self._graph, state, instruction, self._options)
        edges: list[Edge | None] = []
        for mount, plan in zip(runner.mounts, step.sources, strict=True):
            if plan:
                edges.append(self._stage_root(plan, mount.origin, state) if mount.origin != SCRATCH else None)
            elif mount.type == "bind":
                self.context_paths.add(posixpath.normpath("/" + mount.source.lstrip("/")))
                edges.append(self.main_context())
            else:
                edges.append(None)
        runner.carry_out(edges, from_trigger=step.from_trigger)

    def _workdir(self, state: StageState, step: StageStep, instruction: types.Workdir) -> None:
        path = state.text(instruction.path)
        if not state.directory_was_set and not path.startswith("/"):
            message = f'Relative workdir "{path}" can have unexpected results if the base image changes'
            self._checks.warn("WorkdirRelativePath", instruction.origin, message)
        state.directory_was_set = True
        # A path that is absolute is written down as it is, as BuildKit does.
        written = path if path.startswith("/") else posixpath.normpath(posixpath.join(state.directory, path))
        state.configure(working_dir=written)
        directory = state.directory
        made = directory != "/"
        if made:
            user = state.config.user
            owner, _, group = user.partition(":")
            base = 0 if state.root else NONE
            make = MakeDirectory(
                path=directory,
                mode=0o755,
                make_parents=True,
                user=owner_of(owner, base),
                group=owner_of(group, base),
                timestamp=self._options.epoch,
            )
            state.root = self._graph.add(
                Operation(
                    Files([FileAction(action=make, input=base, output=0)]),
                    [state.root] if state.root else [],
                    state.platform,
                ),
                name=state.step_name(
                    shown(instruction.origin.code, state.env, state.rules), from_trigger=step.from_trigger
                ),
                locations=locations(instruction.origin.span),
            )
        state.remember(f"WORKDIR {written}", layer=made)

    def _arg(self, state: StageState, instruction: types.ArgInstruction) -> None:
        told: list[str] = []
        for arg in instruction.args:
            name = arg.name
            value = self._options.build_args.get(name)
            if value is not None or arg.default is not None or name not in self._variables:
                default = None if value is not None or arg.default is None else state.text(arg.default)
                self.args[name] = UsedArg(name, value or default or "", arg.description, instruction.origin.span)
            if value is None:
                value = self._variables.get(name) if arg.default is None else state.text(arg.default)
            if value is not None and name not in NOT_IN_ENVIRONMENT:
                state.env[name] = value
            state.args.append((name, value or ""))
            told.append(name if value is None else f"{name}={value}")
        state.remember("ARG " + " ".join(told))
