"""A graph of ours becomes a definition that clients understand. Pure.

Its operations are named by the digests of what is sent, so a vertex may have another digest there than here.
"""

from collections.abc import Mapping

from husk.builder.graph import operations as ours
from husk.builder.graph import ops
from husk.builder.graph.graph import Graph, Location, SourceFile, Vertex
from husk.builder.graph.llb_names import CUSTOM_NAME
from husk.builder.graph.llb_read import digest_of
from husk.builder.graph.operations import Edge, Operation
from husk.builder.store import file_actions
from husk.registry.manifest import Platform

_NETWORKS = {"sandbox": ops.NET_SANDBOX, "host": ops.NET_HOST, "none": ops.NET_NONE}
_SHARING = {"shared": ops.SHARING_SHARED, "private": ops.SHARING_PRIVATE, "locked": ops.SHARING_LOCKED}


def definition(graph: Graph, edge: Edge | None) -> ops.Definition:
    """All that is needed for an edge, inputs first."""
    written = ops.Definition()
    if edge is None:
        return written
    source = ops.Source(infos=[source_info(one) for one in graph.files])
    known: dict[str, str] = {}
    for vertex in graph.needed_for(edge):
        data = operation(vertex.operation, known).encode()
        digest = known[vertex.digest] = digest_of(data)
        written.definition.append(data)
        written.metadata[digest] = _metadata(vertex)
        if vertex.locations:
            source.locations[digest] = ops.Locations([location(one) for one in vertex.locations])
    last = ops.Op(inputs=[ops.Input(known[edge.digest], edge.output)]).encode()
    written.definition.append(last)
    written.metadata[digest_of(last)] = ops.OpMetadata()
    written.source = source
    return written


def source_info(file: SourceFile) -> ops.SourceInfo:
    """A file with how it came, so that clients can have it once more."""
    return ops.SourceInfo(file.name, file.content, _how_it_came(file), file.language)


def _how_it_came(file: SourceFile) -> bytes | None:
    graph = Graph()
    edges = [graph.add(one) for one in file.loaded]
    return definition(graph, edges[-1]).encode() if edges else file.definition or None


def location(place: Location) -> ops.Location:
    return ops.Location(place.file, [lines(place)])


def lines(place: Location) -> ops.Range:
    return ops.Range(ops.Position(place.start, place.first_letter), ops.Position(place.end, place.last_letter))


def _metadata(vertex: Vertex) -> ops.OpMetadata:
    description = dict(vertex.description)
    if vertex.name:
        description.setdefault(CUSTOM_NAME, vertex.name)
    group = ops.ProgressGroup(vertex.group, vertex.name) if vertex.group else None
    return ops.OpMetadata(ignore_cache=vertex.ignore_cache, description=description, progress_group=group)


def operation(read: Operation, known: Mapping[str, str] = {}) -> ops.Op:
    """`known` are the digests that inputs have in what is sent, by ours."""
    op = ops.Op(inputs=[ops.Input(known.get(edge.digest, edge.digest), edge.output) for edge in read.inputs])
    op.platform = platform(read.platform) if read.platform else None
    match read.body:
        case ours.Source(identifier, attributes):
            op.source = ops.SourceOp(identifier, attributes)
        case ours.Exec() as body:
            op.exec = execution(body)
        case ours.Files(actions):
            op.file = ops.FileOp([file_action(one) for one in actions])
        case ours.Merge():
            op.merge = ops.MergeOp([ops.InputIndex(number) for number in range(len(read.inputs))])
        case ours.Diff(lower, upper):
            op.diff = ops.DiffOp(ops.InputIndex(lower), ops.InputIndex(upper))
        case ours.NestedBuild(builder, inputs, attributes):
            indexes = {name: ops.InputIndex(number) for name, number in inputs.items()}
            op.build = ops.BuildOp(builder, indexes, None, attributes)
    return op


def platform(described: Platform) -> ops.Platform:
    return ops.Platform(
        described.architecture,
        described.os,
        described.variant,
        described.os_version,
        list(described.os_features),
    )


def execution(body: ours.Exec) -> ops.ExecOp:
    process = body.process
    meta = ops.Meta(
        args=process.args,
        env=process.env,
        cwd=process.cwd,
        user=process.user,
        proxy_env=ops.ProxyEnv(**process.proxy) if process.proxy else None,
        extra_hosts=[ops.HostIP(name, address) for name, address in process.extra_hosts],
        hostname=process.hostname,
        ulimit=[ops.Ulimit(one.name, one.soft, one.hard) for one in process.ulimits],
        cgroup_parent=process.cgroup_parent,
        valid_exit_codes=process.valid_exit_codes,
        remove_mount_stubs_recursive=process.remove_stubs,
    )
    return ops.ExecOp(
        meta=meta,
        mounts=[mount(one) for one in body.mounts],
        network=_NETWORKS[body.network],
        security=ops.SECURITY_INSECURE if body.insecure else ops.SECURITY_SANDBOX,
        secretenv=[ops.SecretEnv(one.id, one.name, one.optional) for one in body.secret_env],
    )


def mount(read: ours.ExecMount) -> ops.Mount:
    message = ops.Mount(
        input=read.input,
        selector=read.selector,
        dest=read.target,
        output=read.output,
        readonly=read.read_only,
    )
    match read.kind:
        case ours.CacheMount(id, sharing):
            message.mount_type = ops.MOUNT_CACHE
            message.cache_opt = ops.CacheOpt(id, _SHARING[sharing])
        case ours.TmpfsMount(size):
            message.mount_type = ops.MOUNT_TMPFS
            # Without any option there is no structure for them.
            message.tmpfs_opt = ops.TmpfsOpt(size) if size else None
        case ours.SecretMount(id, uid, gid, mode, optional):
            message.mount_type = ops.MOUNT_SECRET
            message.secret_opt = ops.SecretOpt(id, uid, gid, mode, optional)
        case ours.SshMount(id, uid, gid, mode, optional):
            message.mount_type = ops.MOUNT_SSH
            message.ssh_opt = ops.SSHOpt(id, uid, gid, mode, optional)
    return message


def file_action(step: file_actions.FileAction) -> ops.FileAction:
    message = ops.FileAction(step.input, step.second_input, step.output)
    match step.action:
        case file_actions.Copy() as copy:
            message.copy = _copy(copy)
        case file_actions.MakeFile() as made:
            owner = _owners(made.user, made.group)
            message.mkfile = ops.FileActionMkFile(made.path, made.mode, made.data, owner, _time(made.timestamp))
        case file_actions.MakeDirectory() as made:
            owner = _owners(made.user, made.group)
            time = _time(made.timestamp)
            message.mkdir = ops.FileActionMkDir(made.path, made.mode, made.make_parents, owner, time)
        case file_actions.Symlink() as link:
            owner = _owners(link.user, link.group)
            message.symlink = ops.FileActionSymlink(link.target, link.path, owner, _time(link.timestamp))
        case file_actions.Remove(path=path, may_be_missing=may_be_missing, wildcards=wildcards):
            message.rm = ops.FileActionRm(path, may_be_missing, wildcards)
    return message


def _copy(copy: file_actions.Copy) -> ops.FileActionCopy:
    return ops.FileActionCopy(
        src=copy.source,
        dest=copy.destination,
        owner=_owners(copy.user, copy.group),
        mode=-1 if copy.mode is None else copy.mode,
        follow_symlink=copy.follow_links,
        dir_copy_contents=copy.contents_only,
        attempt_unpack=copy.unpack,
        create_dest_path=copy.make_parents,
        allow_wildcard=copy.wildcards,
        allow_empty_wildcard=copy.may_match_nothing,
        timestamp=_time(copy.timestamp),
        include_patterns=copy.include,
        exclude_patterns=copy.exclude,
        always_replace=copy.replace,
        mode_str=copy.symbolic_mode,
        required_paths=copy.required,
    )


def _time(nanoseconds: int | None) -> int:
    return -1 if nanoseconds is None else nanoseconds


def _owners(user: file_actions.Owner | None, group: file_actions.Owner | None) -> ops.ChownOpt | None:
    return ops.ChownOpt(_owner(user), _owner(group)) if user or group else None


def _owner(owner: file_actions.Owner | None) -> ops.UserOpt | None:
    if owner is None:
        return None
    if owner.number is not None:
        return ops.UserOpt(by_id=owner.number)
    return ops.UserOpt(by_name=ops.NamedUserOpt(owner.name, owner.input))
