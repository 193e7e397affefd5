"""LLB: the operations of a build and what is said about them (`solver/pb/ops.proto`)."""

from typing import Annotated

from husk.rpc.protobuf import Enum, Int32, Message, Uint32, Uint64

NET_SANDBOX, NET_HOST, NET_NONE = range(3)
SECURITY_SANDBOX, SECURITY_INSECURE = range(2)
MOUNT_BIND, MOUNT_SECRET, MOUNT_SSH, MOUNT_CACHE, MOUNT_TMPFS = range(5)
SHARING_SHARED, SHARING_PRIVATE, SHARING_LOCKED = range(3)


class Platform(Message):
    architecture: Annotated[str, 1] = ""
    os: Annotated[str, 2] = ""
    variant: Annotated[str, 3] = ""
    os_version: Annotated[str, 4] = ""
    os_features: Annotated[list[str], 5] = []


class Input(Message):
    digest: Annotated[str, 1] = ""
    index: Annotated[int, 2] = 0


# --- processes -------------------------------------------------------------------------------------------------------


class ProxyEnv(Message):
    http_proxy: Annotated[str, 1] = ""
    https_proxy: Annotated[str, 2] = ""
    ftp_proxy: Annotated[str, 3] = ""
    no_proxy: Annotated[str, 4] = ""
    all_proxy: Annotated[str, 5] = ""


class HostIP(Message):
    host: Annotated[str, 1] = ""
    ip: Annotated[str, 2] = ""


class Ulimit(Message):
    name: Annotated[str, 1] = ""
    soft: Annotated[int, 2] = 0
    hard: Annotated[int, 3] = 0


class Meta(Message):
    args: Annotated[list[str], 1] = []
    env: Annotated[list[str], 2] = []
    cwd: Annotated[str, 3] = ""
    user: Annotated[str, 4] = ""
    proxy_env: Annotated[ProxyEnv | None, 5] = None
    extra_hosts: Annotated[list[HostIP], 6] = []
    hostname: Annotated[str, 7] = ""
    ulimit: Annotated[list[Ulimit], 9] = []
    cgroup_parent: Annotated[str, 10] = ""
    remove_mount_stubs_recursive: Annotated[bool, 11] = False
    valid_exit_codes: Annotated[list[Int32], 12] = []


class SecretEnv(Message):
    id: Annotated[str, 1] = ""
    name: Annotated[str, 2] = ""
    optional: Annotated[bool, 3] = False


class CDIDevice(Message):
    name: Annotated[str, 1] = ""
    optional: Annotated[bool, 2] = False


class TmpfsOpt(Message):
    size: Annotated[int, 1] = 0


class CacheOpt(Message):
    id: Annotated[str, 1] = ""
    sharing: Annotated[Enum, 2] = SHARING_SHARED


class SecretOpt(Message):
    id: Annotated[str, 1] = ""
    uid: Annotated[Uint32, 2] = 0
    gid: Annotated[Uint32, 3] = 0
    mode: Annotated[Uint32, 4] = 0
    optional: Annotated[bool, 5] = False


class SSHOpt(SecretOpt):
    pass


class Mount(Message):
    input: Annotated[int, 1] = 0
    selector: Annotated[str, 2] = ""
    dest: Annotated[str, 3] = ""
    output: Annotated[int, 4] = 0
    readonly: Annotated[bool, 5] = False
    mount_type: Annotated[Enum, 6] = MOUNT_BIND
    tmpfs_opt: Annotated[TmpfsOpt | None, 19] = None
    cache_opt: Annotated[CacheOpt | None, 20] = None
    secret_opt: Annotated[SecretOpt | None, 21] = None
    ssh_opt: Annotated[SSHOpt | None, 22] = None
    result_id: Annotated[str, 23] = ""
    content_cache: Annotated[Enum, 24] = 0


class ExecOp(Message):
    meta: Annotated[Meta | None, 1] = None
    mounts: Annotated[list[Mount], 2] = []
    network: Annotated[Enum, 3] = NET_SANDBOX
    security: Annotated[Enum, 4] = SECURITY_SANDBOX
    secretenv: Annotated[list[SecretEnv], 5] = []
    cdi_devices: Annotated[list[CDIDevice], 6] = []


# --- files -----------------------------------------------------------------------------------------------------------


class NamedUserOpt(Message):
    name: Annotated[str, 1] = ""
    input: Annotated[int, 2] = 0


class UserOpt(Message):
    by_name: Annotated[NamedUserOpt | None, 1] = None
    by_id: Annotated[Uint32 | None, 2] = None


class ChownOpt(Message):
    user: Annotated[UserOpt | None, 1] = None
    group: Annotated[UserOpt | None, 2] = None


class FileActionCopy(Message):
    src: Annotated[str, 1] = ""
    dest: Annotated[str, 2] = ""
    owner: Annotated[ChownOpt | None, 3] = None
    mode: Annotated[Int32, 4] = 0
    follow_symlink: Annotated[bool, 5] = False
    dir_copy_contents: Annotated[bool, 6] = False
    attempt_unpack: Annotated[bool, 7] = False
    create_dest_path: Annotated[bool, 8] = False
    allow_wildcard: Annotated[bool, 9] = False
    allow_empty_wildcard: Annotated[bool, 10] = False
    timestamp: Annotated[int, 11] = 0
    include_patterns: Annotated[list[str], 12] = []
    exclude_patterns: Annotated[list[str], 13] = []
    always_replace: Annotated[bool, 14] = False
    mode_str: Annotated[str, 15] = ""
    required_paths: Annotated[list[str], 16] = []


class FileActionMkFile(Message):
    path: Annotated[str, 1] = ""
    mode: Annotated[Int32, 2] = 0
    data: Annotated[bytes, 3] = b""
    owner: Annotated[ChownOpt | None, 4] = None
    timestamp: Annotated[int, 5] = 0


class FileActionMkDir(Message):
    path: Annotated[str, 1] = ""
    mode: Annotated[Int32, 2] = 0
    make_parents: Annotated[bool, 3] = False
    owner: Annotated[ChownOpt | None, 4] = None
    timestamp: Annotated[int, 5] = 0


class FileActionRm(Message):
    path: Annotated[str, 1] = ""
    allow_not_found: Annotated[bool, 2] = False
    allow_wildcard: Annotated[bool, 3] = False


class FileActionSymlink(Message):
    oldpath: Annotated[str, 1] = ""
    newpath: Annotated[str, 2] = ""
    owner: Annotated[ChownOpt | None, 3] = None
    timestamp: Annotated[int, 4] = 0


class FileAction(Message):
    input: Annotated[int, 1] = 0
    secondary_input: Annotated[int, 2] = 0
    output: Annotated[int, 3] = 0
    copy: Annotated[FileActionCopy | None, 4] = None
    mkfile: Annotated[FileActionMkFile | None, 5] = None
    mkdir: Annotated[FileActionMkDir | None, 6] = None
    rm: Annotated[FileActionRm | None, 7] = None
    symlink: Annotated[FileActionSymlink | None, 8] = None


class FileOp(Message):
    actions: Annotated[list[FileAction], 2] = []


# --- sources, and what is made of file systems ------------------------------------------------------------------------


class SourceOp(Message):
    identifier: Annotated[str, 1] = ""
    attrs: Annotated[dict[str, str], 2] = {}


class InputIndex(Message):
    """One of an operation's inputs, by its place among them."""

    input: Annotated[int, 1] = 0


class BuildOp(Message):
    builder: Annotated[int, 1] = 0
    inputs: Annotated[dict[str, InputIndex], 2] = {}
    definition: Annotated[bytes | None, 3] = None  # an encoded `Definition`
    attrs: Annotated[dict[str, str], 4] = {}


class MergeOp(Message):
    inputs: Annotated[list[InputIndex], 1] = []


class DiffOp(Message):
    lower: Annotated[InputIndex | None, 1] = None
    upper: Annotated[InputIndex | None, 2] = None


class PassthroughOp(Message):
    id: Annotated[str, 1] = ""
    outputs: Annotated[list[int], 2] = []


class WorkerConstraints(Message):
    filter: Annotated[list[str], 1] = []


class Op(Message):
    inputs: Annotated[list[Input], 1] = []
    exec: Annotated[ExecOp | None, 2] = None
    source: Annotated[SourceOp | None, 3] = None
    file: Annotated[FileOp | None, 4] = None
    build: Annotated[BuildOp | None, 5] = None
    merge: Annotated[MergeOp | None, 6] = None
    diff: Annotated[DiffOp | None, 7] = None
    passthrough: Annotated[PassthroughOp | None, 8] = None
    platform: Annotated[Platform | None, 10] = None
    constraints: Annotated[WorkerConstraints | None, 11] = None


# --- what is said about operations -----------------------------------------------------------------------------------


class ExportCache(Message):
    value: Annotated[bool, 1] = False


class ProgressGroup(Message):
    id: Annotated[str, 1] = ""
    name: Annotated[str, 2] = ""
    weak: Annotated[bool, 3] = False


class LinuxResources(Message):
    memory: Annotated[int, 1] = 0
    memory_swap: Annotated[int, 2] = 0
    cpu_shares: Annotated[Uint64, 3] = 0
    cpu_period: Annotated[Uint64, 4] = 0
    cpu_quota: Annotated[int, 5] = 0
    cpuset_cpus: Annotated[str, 6] = ""
    cpuset_mems: Annotated[str, 7] = ""


class OpMetadata(Message):
    ignore_cache: Annotated[bool, 1] = False
    description: Annotated[dict[str, str], 2] = {}
    export_cache: Annotated[ExportCache | None, 4] = None
    caps: Annotated[dict[str, bool], 5] = {}
    progress_group: Annotated[ProgressGroup | None, 6] = None
    linux_resources: Annotated[LinuxResources | None, 7] = None


class Position(Message):
    line: Annotated[Int32, 1] = 0
    character: Annotated[Int32, 2] = 0


class Range(Message):
    start: Annotated[Position | None, 1] = None
    end: Annotated[Position | None, 2] = None


class Location(Message):
    source_index: Annotated[Int32, 1] = 0
    ranges: Annotated[list[Range], 2] = []


class Locations(Message):
    locations: Annotated[list[Location], 1] = []


class SourceInfo(Message):
    filename: Annotated[str, 1] = ""
    data: Annotated[bytes, 2] = b""
    definition: Annotated[bytes | None, 3] = None  # an encoded `Definition`
    language: Annotated[str, 4] = ""


class Source(Message):
    locations: Annotated[dict[str, Locations], 1] = {}
    infos: Annotated[list[SourceInfo], 2] = []


class Definition(Message):
    """Operations as encoded `Op`s, inputs first; the last has no operation of its own and names the result."""

    definition: Annotated[list[bytes], 1] = []
    metadata: Annotated[dict[str, OpMetadata], 2] = {}
    source: Annotated[Source | None, 3] = None
