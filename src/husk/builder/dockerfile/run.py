"""RUN: what it becomes, with its mounts, secrets and heredocs."""

import posixpath
from collections.abc import Sequence

from msgspec import structs

from husk.builder.dockerfile import history, lines, run_mounts
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.instructions import Run
from husk.builder.dockerfile.options import Options
from husk.builder.dockerfile.state import StageState, inline_file, locations, prepared_volumes, shown
from husk.builder.dockerfile.variables import proxies
from husk.builder.dockerfile.words import WordRules
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import (
    BindMount,
    CacheMount,
    Edge,
    Exec,
    ExecMount,
    Files,
    Network,
    Operation,
    ProcessSpec,
    SecretMount,
    SecretVariable,
    SshMount,
    TmpfsMount,
)
from husk.builder.store.file_actions import NONE, FileAction, MakeDirectory, Owner

SCRIPTS = "/dev/pipes"
SSH_SOCKET = "/run/buildkit/ssh_agent.{}"
NETWORKS: dict[str, Network] = {"default": "sandbox", "none": "none", "host": "host"}
CACHE_OWNER = "[internal] setting cache mount permissions"


class RunConverter:
    """Carries out one RUN on a stage."""

    def __init__(self, graph: Graph, state: StageState, instruction: Run, options: Options) -> None:
        self._graph = graph
        self._state = state
        self._instruction = instruction
        self._options = options
        self._inputs: list[Edge] = []
        self._mounts: list[ExecMount] = []
        self._secret_env: list[SecretVariable] = []
        self._code = instruction.origin.code
        self.mounts = [run_mounts.resolve(mount, state.text) for mount in instruction.mounts]

    def carry_out(self, sources: Sequence[Edge | None], *, from_trigger: bool) -> None:
        """`sources` has an edge for each mount: the stage that it names, or the build context."""
        state = self._state
        self._mounts.append(ExecMount(target="/", input=self._input(state.root), output=0))
        words = self._words()
        if self._options.classic and not words:
            state.remember(history.run(words, state.args, state.env))
            return
        for mount, source in zip(self.mounts, sources, strict=True):
            self._mount(mount, source)
        if self._options.classic:
            self._volumes()
        if self._options.shm_size:
            self._mounts.append(ExecMount(target="/dev/shm", kind=TmpfsMount(self._options.shm_size)))
        mounts, inputs = ordered(self._mounts, self._inputs)
        body = Exec(
            process=self._process(words),
            mounts=mounts,
            network=self._network(),
            insecure=self._instruction.security == "insecure",
            secret_env=self._secret_env,
        )
        state.root = self._graph.add(
            Operation(body, inputs, state.platform),
            name=self._name(from_trigger=from_trigger),
            ignore_cache=state.ignore_cache,
            locations=locations(self._instruction.origin.span),
            description={"com.docker.dockerfile.v1.command": self._instruction.origin.code},
        )
        state.remember(history.run(words, state.args, state.env), layer=True)

    def _input(self, edge: Edge | None) -> int:
        if edge is None:
            return NONE
        self._inputs.append(edge)
        return len(self._inputs) - 1

    def _process(self, words: list[str]) -> ProcessSpec:
        return ProcessSpec(
            args=words,
            env=self._state.environment(),
            cwd=self._state.directory,
            user=self._state.config.user,
            hostname=self._options.hostname,
            extra_hosts=self._options.extra_hosts,
            ulimits=self._options.ulimits,
            cgroup_parent=self._options.cgroup_parent,
            proxy=proxies(self._options.build_args),
            limits=self._options.limits,
            remove_stubs=True,
        )

    def _network(self) -> Network:
        said = self._instruction.network if "network" in self._instruction.flags else self._options.network
        return NETWORKS.get(said or "default", "sandbox")

    def _name(self, *, from_trigger: bool) -> str:
        # A secret's value is not known here; its stars tell that it comes from one.
        masked = {variable.name: "****" for variable in self._secret_env}
        rules = WordRules(escape=self._state.rules.escape, keep_quotes=True, keep_unset=True)
        text = shown(self._code, {**self._state.env, **masked}, rules)
        return self._state.step_name(text, from_trigger=from_trigger)

    # --- the command -------------------------------------------------------------------------------------------------

    def _words(self) -> list[str]:
        command = self._instruction.command
        words = command.words
        if command.heredocs:
            words = self._with_heredocs()
        if self._options.classic and not words:
            return list(self._state.shell) if command.for_shell else []
        return [*self._state.shell, " ".join(words)] if command.for_shell else words

    def _with_heredocs(self) -> list[str]:
        command = self._instruction.command
        (line,) = command.words
        first = command.heredocs[0]
        if lines.heredoc_of(line) is None:
            # The shell knows what to do with them.
            texts = "".join(f"\n{heredoc.content}{heredoc.name}" for heredoc in command.heredocs)
            return [line + texts]
        self._code += f" ({_summary(first.content)})"
        if not first.text.startswith("#!"):
            return [first.text]
        edge = inline_file(self._graph, self._state, self._instruction, first.name, first.text, mode=0o755)
        self._mounts.append(ExecMount(target=SCRIPTS, input=self._input(edge), read_only=True))
        return [f"{SCRIPTS}/{first.name}"]

    def _volumes(self) -> None:
        """A volume is filled with what the image has in its place, and what is written into it is gone afterwards."""
        taken = {mount.target for mount in self._mounts}
        prepared, paths = prepared_volumes(self._graph, self._state, self._instruction.origin.span)
        for path in paths:
            if path not in taken:
                self._mounts.append(ExecMount(target=path, input=self._input(prepared), selector=path))

    # --- mounts ------------------------------------------------------------------------------------------------------

    def _mount(self, mount: run_mounts.MountFlag, source: Edge | None) -> None:
        if mount.type == "secret":
            self._secret(mount)
        elif mount.type == "ssh":
            self._ssh(mount)
        else:
            self._files(mount, source)

    def _files(self, mount: run_mounts.MountFlag, source: Edge | None) -> None:
        kind: BindMount | CacheMount | TmpfsMount = BindMount()
        target = posixpath.normpath(posixpath.join("/", self._state.directory, mount.target))
        if target == "/":
            raise DockerfileError(f'invalid mount target "{mount.target or "/"}"')
        if mount.type == "tmpfs":
            kind, source = TmpfsMount(mount.size), None
        elif mount.type == "cache":
            name = mount.id or posixpath.normpath(mount.target)
            kind = CacheMount(f"{self._options.cache_namespace}/{name}", mount.sharing or "shared")
        selector = posixpath.normpath("/" + mount.source.lstrip("/"))
        if selector == "/" and mount.type == "cache" and (mount.uid, mount.gid, mount.mode) != (None, None, None):
            source, selector = self._owned(mount, source), "/cache"
        self._mounts.append(
            ExecMount(
                target="/" + target.lstrip("/"),
                kind=kind,
                input=self._input(source),
                selector="" if selector == "/" else selector,
                read_only=mount.read_only,
            )
        )

    def _owned(self, mount: run_mounts.MountFlag, source: Edge | None) -> Edge:
        """The first content of a cache: an empty directory with the owner that was asked for."""
        make = MakeDirectory(
            path="/cache",
            mode=0o755 if mount.mode is None else mount.mode,
            user=Owner(number=mount.uid or 0),
            group=Owner(number=mount.gid or 0),
        )
        inputs = [source] if source else []
        action = FileAction(action=make, input=0 if source else NONE, output=0)
        operation = Operation(Files([action]), inputs, self._state.platform)
        # A cache is known by what it begins with, too: without a cache that is new, and so is this one.
        return self._graph.add(operation, name=CACHE_OWNER, ignore_cache=self._state.ignore_cache)

    def _secret(self, mount: run_mounts.MountFlag) -> None:
        name = mount.source or mount.id or posixpath.basename(mount.target)
        if mount.env is not None:
            variable = mount.env or posixpath.basename(name)
            self._secret_env.append(SecretVariable(name, variable, optional=not mount.required))
        if mount.env is None or mount.target:
            target = mount.target or f"/run/secrets/{posixpath.basename(name)}"
            kind = SecretMount(
                name,
                uid=mount.uid or 0,
                gid=mount.gid or 0,
                mode=0o400 if mount.mode is None else mount.mode,
                optional=not mount.required,
            )
            self._mounts.append(ExecMount(target=self._in_directory(target), kind=kind))

    def _ssh(self, mount: run_mounts.MountFlag) -> None:
        if mount.source:
            raise DockerfileError("ssh does not support source")
        number = sum(isinstance(other.kind, SshMount) for other in self._mounts)
        kind = SshMount(
            mount.id or "default",
            uid=mount.uid or 0,
            gid=mount.gid or 0,
            mode=0o600 if mount.mode is None else mount.mode,
            optional=not mount.required,
        )
        target = mount.target or SSH_SOCKET.format(number)
        self._mounts.append(ExecMount(target=self._in_directory(target), kind=kind))

    def _in_directory(self, target: str) -> str:
        return posixpath.normpath(posixpath.join("/", self._state.directory, target))


def _summary(text: str) -> str:
    first, _, rest = text.strip().replace("\r\n", "\n").partition("\n")
    return first + "..." if rest else first


def ordered(mounts: Sequence[ExecMount], inputs: Sequence[Edge]) -> tuple[list[ExecMount], list[Edge]]:
    """In BuildKit's order, so that they have one key however they are written: by target, secrets and agents last."""
    last = (SecretMount, SshMount)
    kinds = [last.index(type(one.kind)) + 1 if type(one.kind) in last else 0 for one in mounts]
    ranked = sorted(zip(kinds, mounts, strict=True), key=lambda pair: (pair[0], "" if pair[0] else pair[1].target))
    found = [one for _, one in ranked]
    edges = list(dict.fromkeys(inputs[one.input] for one in found if one.input != NONE))
    numbered = [
        structs.replace(one, input=edges.index(inputs[one.input])) if one.input != NONE else one for one in found
    ]
    return numbered, edges
