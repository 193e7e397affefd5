"""A definition that a client sent becomes a graph of ours. Pure.

Vertices keep the digests by which the client knows them. What we do not know and what would change the result is
refused, and so are inputs that are not there and numbers that lead nowhere.
"""

import hashlib
from typing import Literal, NamedTuple, TypeVar

from msgspec import Struct

from husk.builder.graph import operations as ours
from husk.builder.graph import ops, schemes
from husk.builder.graph.graph import LIMITS, MOST_OPERATIONS, Definition, Graph, GraphLimits, Location, SourceFile
from husk.builder.graph.llb_names import CUSTOM_NAME, name_of
from husk.builder.graph.operations import Edge, Operation
from husk.builder.store import file_actions
from husk.errors import InvalidParameter, NotImplementedYet
from husk.registry.manifest import Platform

# What is said of all operations together, and of one of them: each value costs the daemon something, too.
MOST_VALUES, _MOST_OF_ONE = 500_000, 20_000
_NETWORKS: tuple[Literal["sandbox", "host", "none"], ...] = ("sandbox", "host", "none")
_SHARING: tuple[Literal["shared", "private", "locked"], ...] = ("shared", "private", "locked")


class ReadLimits(NamedTuple):
    """Limits of one definition: the values in all of its operations and in one of them, and those of its graph."""

    values: int = MOST_VALUES
    values_of_one: int = _MOST_OF_ONE
    graph: GraphLimits = LIMITS


_USUAL = ReadLimits()


def definition(message: ops.Definition, limits: ReadLimits = _USUAL) -> Definition:
    """The graph and the edge that is wanted; no operations at all are a file system with nothing in it."""
    if not message.definition:
        return Definition(Graph(), None)
    if len(message.definition) > MOST_OPERATIONS + 1:
        raise InvalidParameter(f"a definition has {MOST_OPERATIONS} operations at most")
    found: dict[str, ops.Op] = {}
    left = limits.values
    for data in message.definition:
        count = ops.Op.count(data, limits.values_of_one)
        left -= count
        if count > limits.values_of_one or left < 0:
            most = f"{limits.values} values at most, and each of them {limits.values_of_one}"
            raise InvalidParameter(f"the operations of a definition have {most}")
        found[digest_of(data)] = ops.Op.decode(data, most=None)
    last = found.pop(digest_of(message.definition[-1]))
    if len(last.inputs) != 1:
        raise InvalidParameter("the last operation of a definition must have one input, the result")
    source = message.source or ops.Source()
    graph = Graph([source_file(info) for info in source.infos], limits.graph)
    reader = _Reader(graph, found, message.metadata, source)
    for digest in found:
        reader.add(digest)
    edge = _edge(last.inputs[0])
    if edge.digest not in graph:
        raise InvalidParameter(f"the result of the definition is not in it: {edge.digest}")
    _check_output(edge, graph)
    return Definition(graph, edge)


def source_file(info: ops.SourceInfo) -> SourceFile:
    return SourceFile(info.filename, info.data, info.language, definition=info.definition or b"")


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


class _Reader:
    """Adds operations to a graph, inputs first, in whatever order they came."""

    def __init__(
        self, graph: Graph, found: dict[str, ops.Op], metadata: dict[str, ops.OpMetadata], source: ops.Source
    ) -> None:
        self._graph = graph
        self._found = found
        self._metadata = metadata
        self._source = source

    def add(self, wanted: str) -> None:
        """Without recursion: a client may send a chain that is longer than our stack is deep."""
        waiting, open_ones = [wanted], set[str]()
        while waiting:
            digest = waiting[-1]
            if digest in self._graph:
                waiting.pop()
                continue
            op = self._found.get(digest)
            if op is None:
                raise InvalidParameter(f"an operation of the definition has an input that is missing: {digest}")
            missing = [one.digest for one in op.inputs if one.digest not in self._graph]
            if missing and digest in open_ones:
                raise InvalidParameter("the operations of the definition need each other in a circle")
            open_ones.add(digest)
            if missing:
                waiting.extend(missing)
            else:
                self._add(digest, op)

    def _add(self, digest: str, op: ops.Op) -> None:
        metadata = self._metadata.get(digest) or ops.OpMetadata()
        read = operation(op, metadata.linux_resources)
        for edge in read.inputs:
            _check_output(edge, self._graph)
        names = [self._graph[edge.digest].name for edge in read.inputs]
        group = metadata.progress_group
        self._graph.add_as(
            digest,
            read,
            name=metadata.description.get(CUSTOM_NAME) or name_of(read, names),
            description=metadata.description,
            ignore_cache=metadata.ignore_cache,
            group=group.id if group else "",
            locations=self._locations(digest),
        )

    def _locations(self, digest: str) -> list[Location]:
        known = self._source.locations.get(digest)
        return [location for one in known.locations for location in locations(one)] if known else []


def locations(message: ops.Location) -> list[Location]:
    found = [(one.start, one.end or one.start) for one in message.ranges if one.start]
    return [
        Location(message.source_index, start.line, end.line, start.character, end.character) for start, end in found
    ]


def operation(op: ops.Op, resources: ops.LinuxResources | None = None) -> Operation:
    read = Operation(_body(op, resources), [_edge(one) for one in op.inputs], platform(op.platform))
    _check_numbers(read)
    return checked(read)


def platform(message: ops.Platform | None) -> Platform | None:
    if message is None or not (message.os or message.architecture):
        return None
    return Platform(message.architecture, message.os, message.variant, message.os_version, tuple(message.os_features))


def _edge(message: ops.Input) -> Edge:
    if message.index < 0:
        raise InvalidParameter(f"an input has no output {message.index}")
    return Edge(message.digest, message.index)


def _body(op: ops.Op, resources: ops.LinuxResources | None) -> ours.Body:
    if op.source is not None:
        return ours.Source(op.source.identifier, op.source.attrs)
    if op.exec is not None:
        return _exec(op.exec, resources)
    if op.file is not None:
        return ours.Files([_file_action(one) for one in op.file.actions])
    if op.merge is not None:
        if [one.input for one in op.merge.inputs] != list(range(len(op.inputs))):
            raise InvalidParameter("a merge must take each of its inputs once, in their order")
        return ours.Merge()
    if op.diff is not None:
        lower, upper = op.diff.lower, op.diff.upper
        return ours.Diff(lower.input if lower else file_actions.NONE, upper.input if upper else file_actions.NONE)
    if op.build is not None:
        if op.build.definition:
            raise NotImplementedYet("a build within a build by a definition of its own is not implemented by Husk yet")
        inputs = {name: one.input for name, one in op.build.inputs.items()}
        return ours.NestedBuild(op.build.builder, inputs, op.build.attrs)
    if op.passthrough is not None:
        raise NotImplementedYet("the operation passthrough is not implemented by Husk yet")
    raise InvalidParameter("the definition has an operation that is not known here")


def source(op: ops.SourceOp) -> ours.Source:
    """Read a source. InvalidParameter for an identifier that is too long."""
    read = ours.Source(op.identifier, dict(op.attrs))
    schemes.check_length(read)
    return read


Texts = TypeVar("Texts", bound=Struct)


def checked(read: Texts) -> Texts:
    """The same, if no text in it has a NUL."""
    if ours.has_nul(read):
        raise InvalidParameter("an operation has a text with a NUL in it")
    return read


# --- processes -------------------------------------------------------------------------------------------------------


def _exec(op: ops.ExecOp, resources: ops.LinuxResources | None) -> ours.Exec:
    if op.meta is None or not op.meta.args:
        raise InvalidParameter("a process without arguments")
    if op.cdi_devices:
        raise NotImplementedYet("devices in builds are not implemented by Husk yet")
    if not op.mounts or op.mounts[0].dest != "/":
        raise InvalidParameter("the first mount of a process must be its root")
    return ours.Exec(
        process=process(op.meta, resources),
        mounts=[mount(one) for one in op.mounts],
        network=network(op.network),
        insecure=op.security == ops.SECURITY_INSECURE,
        secret_env=[ours.SecretVariable(one.id, one.name, one.optional) for one in op.secretenv],
    )


def network(number: int) -> Literal["sandbox", "host", "none"]:
    return _NETWORKS[_known(number, _NETWORKS, "network")]


def process(meta: ops.Meta, resources: ops.LinuxResources | None = None) -> ours.ProcessSpec:
    proxy = meta.proxy_env
    names = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
    return ours.ProcessSpec(
        args=meta.args,
        env=meta.env,
        cwd=meta.cwd or "/",
        user=meta.user,
        hostname=meta.hostname,
        extra_hosts=[(one.host, one.ip) for one in meta.extra_hosts],
        ulimits=[ours.StepUlimit(one.name, one.soft, one.hard) for one in meta.ulimit],
        cgroup_parent=meta.cgroup_parent,
        proxy={name: getattr(proxy, name) for name in names if getattr(proxy, name)} if proxy else {},
        limits=_limits(resources) if resources else ours.StepLimits(),
        valid_exit_codes=meta.valid_exit_codes,
        remove_stubs=meta.remove_mount_stubs_recursive,
    )


def _limits(resources: ops.LinuxResources) -> ours.StepLimits:
    return ours.StepLimits(
        memory=resources.memory,
        memory_swap=resources.memory_swap,
        cpu_shares=resources.cpu_shares,
        cpu_period=resources.cpu_period,
        cpu_quota=resources.cpu_quota,
        cpuset_cpus=resources.cpuset_cpus,
        cpuset_mems=resources.cpuset_mems,
    )


def mount(message: ops.Mount) -> ours.ExecMount:
    return ours.ExecMount(
        target=message.dest,
        kind=_mount_kind(message),
        input=message.input,
        selector=message.selector,
        output=message.output,
        read_only=message.readonly,
    )


def _mount_kind(
    message: ops.Mount,
) -> ours.BindMount | ours.CacheMount | ours.TmpfsMount | ours.SecretMount | ours.SshMount:
    match message.mount_type:
        case ops.MOUNT_BIND:
            return ours.BindMount()
        case ops.MOUNT_CACHE:
            cache = message.cache_opt or ops.CacheOpt()
            return ours.CacheMount(cache.id, _SHARING[_known(cache.sharing, _SHARING, "sharing of a cache")])
        case ops.MOUNT_TMPFS:
            return ours.TmpfsMount(message.tmpfs_opt.size if message.tmpfs_opt else 0)
        case ops.MOUNT_SECRET:
            secret = message.secret_opt or ops.SecretOpt()
            return ours.SecretMount(secret.id, secret.uid, secret.gid, secret.mode, secret.optional)
        case ops.MOUNT_SSH:
            agent = message.ssh_opt or ops.SSHOpt()
            return ours.SshMount(agent.id, agent.uid, agent.gid, agent.mode, agent.optional)
        case kind:
            raise InvalidParameter(f"no such kind of mount: {kind}")


# --- files -----------------------------------------------------------------------------------------------------------


def _file_action(message: ops.FileAction) -> file_actions.FileAction:
    return file_actions.FileAction(
        action=_action(message),
        input=message.input,
        second_input=message.secondary_input,
        output=message.output,
    )


def _action(
    message: ops.FileAction,
) -> (
    file_actions.Copy | file_actions.MakeFile | file_actions.MakeDirectory | file_actions.Symlink | file_actions.Remove
):
    if (copy := message.copy) is not None:
        return _copy(copy)
    if (made := message.mkfile) is not None:
        user, group = _owners(made.owner)
        time = _time(made.timestamp)
        return file_actions.MakeFile(
            path=made.path, mode=made.mode, data=made.data, user=user, group=group, timestamp=time
        )
    if (folder := message.mkdir) is not None:
        user, group = _owners(folder.owner)
        return file_actions.MakeDirectory(
            path=folder.path,
            mode=folder.mode,
            make_parents=folder.make_parents,
            user=user,
            group=group,
            timestamp=_time(folder.timestamp),
        )
    if (link := message.symlink) is not None:
        user, group = _owners(link.owner)
        time = _time(link.timestamp)
        return file_actions.Symlink(target=link.oldpath, path=link.newpath, user=user, group=group, timestamp=time)
    if (gone := message.rm) is not None:
        return file_actions.Remove(path=gone.path, may_be_missing=gone.allow_not_found, wildcards=gone.allow_wildcard)
    raise InvalidParameter("the definition does something with files that is not known here")


def _copy(copy: ops.FileActionCopy) -> file_actions.Copy:
    user, group = _owners(copy.owner)
    return file_actions.Copy(
        source=copy.src,
        destination=copy.dest,
        user=user,
        group=group,
        mode=copy.mode if copy.mode >= 0 else None,
        symbolic_mode=copy.mode_str,
        follow_links=copy.follow_symlink,
        contents_only=copy.dir_copy_contents,
        unpack=copy.attempt_unpack,
        make_parents=copy.create_dest_path,
        wildcards=copy.allow_wildcard,
        may_match_nothing=copy.allow_empty_wildcard,
        timestamp=_time(copy.timestamp),
        include=copy.include_patterns,
        exclude=copy.exclude_patterns,
        replace=copy.always_replace,
        required=copy.required_paths,
    )


def _time(nanoseconds: int) -> int | None:
    return nanoseconds if nanoseconds >= 0 else None


def _owners(message: ops.ChownOpt | None) -> tuple[file_actions.Owner | None, file_actions.Owner | None]:
    return (_owner(message.user), _owner(message.group)) if message else (None, None)


def _owner(message: ops.UserOpt | None) -> file_actions.Owner | None:
    if message is None:
        return None
    if message.by_name is not None:
        return file_actions.Owner(name=message.by_name.name, input=message.by_name.input)
    return file_actions.Owner(number=message.by_id or 0)


# --- numbers that name inputs and outputs ----------------------------------------------------------------------------


def _check_output(edge: Edge, graph: Graph) -> None:
    """Refuse an output that an operation does not have."""
    match graph[edge.digest].operation.body:
        case ours.Exec(mounts=mounts):
            count = len({one.output for one in mounts} - {file_actions.NONE})
        case ours.Files(actions):
            count = 1 + max((one.output for one in actions), default=file_actions.NONE)
        case _:
            count = 1
    if edge.output >= count:
        raise InvalidParameter(f"an input is an output that its operation does not have: {edge.output}")


def _check_numbers(read: Operation) -> None:
    """Refuse numbers of inputs that there are not, and outputs that are not numbered from zero, one after the other;
    `NONE` is allowed everywhere."""
    count = len(read.inputs)
    match read.body:
        case ours.Exec(mounts=mounts):
            numbers = [one.input for one in mounts]
            _check(
                [one.output for one in mounts],
                len({one.output for one in mounts} - {file_actions.NONE}),
                "makes an output",
            )
        case ours.Diff(lower, upper):
            numbers = [lower, upper]
        case ours.NestedBuild(builder, inputs):
            numbers = [builder, *inputs.values()]
        case ours.Files(actions):
            _check([one.output for one in actions], len(actions), "makes an output")
            # An action may take what an earlier one made: those are counted behind the inputs.
            for number, action in enumerate(actions):
                _check([action.input, action.second_input], count + number)
            return
        case _:
            return
    _check(numbers, count)


def _check(numbers: list[int], count: int, what: str = "names an input") -> None:
    for number in numbers:
        if not file_actions.NONE <= number < count:
            raise InvalidParameter(f"an operation {what} that it does not have: {number}")


def _known(number: int, names: tuple[str, ...], what: str) -> int:
    if not 0 <= number < len(names):
        raise InvalidParameter(f"no such {what}: {number}")
    return number
