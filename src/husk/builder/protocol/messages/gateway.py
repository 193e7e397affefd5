"""The service LLBBridge, which frontends call (`frontend/gateway/pb/gateway.proto`, `util/apicaps/pb/caps.proto`).

Files as fsutil describes them (`types/stat.proto`).

Processes that a frontend runs, of the service LLBBridge (`frontend/gateway/pb/gateway.proto`).
"""

from typing import Annotated

from husk.builder.graph.ops import (
    HostIP,
    Meta,
    Mount,
    Platform,
    Range,
    SecretEnv,
    SourceInfo,
    SourceOp,
    WorkerConstraints,
)
from husk.builder.protocol.messages.common import Status, Timestamp
from husk.builder.protocol.messages.control import CacheOptionsEntry, WorkerRecord
from husk.builder.protocol.messages.source_policy import Policy
from husk.rpc.protobuf import Enum, Int32, Message, Uint32


class Stat(Message):
    """`mode` is Go's: the bits for the kind of a file are not those of the kernel."""

    path: Annotated[str, 1] = ""
    mode: Annotated[Uint32, 2] = 0
    uid: Annotated[Uint32, 3] = 0
    gid: Annotated[Uint32, 4] = 0
    size: Annotated[int, 5] = 0
    mod_time: Annotated[int, 6] = 0
    linkname: Annotated[str, 7] = ""
    devmajor: Annotated[int, 8] = 0
    devminor: Annotated[int, 9] = 0
    xattrs: Annotated[dict[str, bytes], 10] = {}


class Ref(Message):
    id: Annotated[str, 1] = ""
    definition: Annotated[bytes | None, 2] = None  # an encoded `Definition`


class RefMap(Message):
    refs: Annotated[dict[str, Ref], 1] = {}


class InTotoSubject(Message):
    kind: Annotated[Enum, 1] = 0
    digest: Annotated[list[str], 2] = []
    name: Annotated[str, 3] = ""


class Attestation(Message):
    kind: Annotated[Enum, 1] = 0
    metadata: Annotated[dict[str, bytes], 2] = {}
    ref: Annotated[Ref | None, 3] = None
    path: Annotated[str, 4] = ""
    predicate_type: Annotated[str, 5] = ""
    subjects: Annotated[list[InTotoSubject], 6] = []


class Attestations(Message):
    attestation: Annotated[list[Attestation], 1] = []


class Result(Message):
    """One ref, or several by the platforms that they are for."""

    ref: Annotated[Ref | None, 3] = None
    refs: Annotated[RefMap | None, 4] = None
    metadata: Annotated[dict[str, bytes], 10] = {}
    attestations: Annotated[dict[str, Attestations], 12] = {}


class ReturnRequest(Message):
    result: Annotated[Result | None, 1] = None
    error: Annotated[Status | None, 2] = None


class Empty(Message):
    """Requests and answers that say nothing."""


class InputsResponse(Message):
    definitions: Annotated[dict[str, bytes], 1] = {}  # encoded


# --- sources ---------------------------------------------------------------------------------------------------------


class ResolveImageConfigRequest(Message):
    ref: Annotated[str, 1] = ""
    platform: Annotated[Platform | None, 2] = None
    resolve_mode: Annotated[str, 3] = ""
    log_name: Annotated[str, 4] = ""
    resolver_type: Annotated[Int32, 5] = 0
    session_id: Annotated[str, 6] = ""
    store_id: Annotated[str, 7] = ""
    source_policies: Annotated[list[Policy], 8] = []


class ResolveImageConfigResponse(Message):
    digest: Annotated[str, 1] = ""
    config: Annotated[bytes, 2] = b""
    ref: Annotated[str, 3] = ""


class ResolveSourceImageRequest(Message):
    no_config: Annotated[bool, 1] = False
    attestation_chain: Annotated[bool, 2] = False


class ResolveSourceImageResponse(Message):
    digest: Annotated[str, 1] = ""
    config: Annotated[bytes, 2] = b""


class ResolveSourceGitResponse(Message):
    checksum: Annotated[str, 1] = ""
    ref: Annotated[str, 2] = ""
    commit_checksum: Annotated[str, 3] = ""


class ResolveSourceHTTPResponse(Message):
    checksum: Annotated[str, 1] = ""
    filename: Annotated[str, 2] = ""
    last_modified: Annotated[Timestamp | None, 3] = None


class ResolveSourceMetaRequest(Message):
    source: Annotated[SourceOp | None, 1] = None
    platform: Annotated[Platform | None, 2] = None
    log_name: Annotated[str, 3] = ""
    resolve_mode: Annotated[str, 4] = ""
    image: Annotated[ResolveSourceImageRequest | None, 6] = None
    source_policies: Annotated[list[Policy], 8] = []


class ResolveSourceMetaResponse(Message):
    source: Annotated[SourceOp | None, 1] = None
    image: Annotated[ResolveSourceImageResponse | None, 2] = None
    git: Annotated[ResolveSourceGitResponse | None, 3] = None
    http: Annotated[ResolveSourceHTTPResponse | None, 4] = None


# --- refs ------------------------------------------------------------------------------------------------------------


class SolveRequest(Message):
    definition: Annotated[bytes | None, 1] = None  # an encoded `Definition`: what it costs to read is not spent here
    frontend: Annotated[str, 2] = ""
    frontend_opt: Annotated[dict[str, str], 3] = {}
    allow_result_return: Annotated[bool, 5] = False
    allow_result_array_ref: Annotated[bool, 6] = False
    final: Annotated[bool, 10] = False
    exporter_attr: Annotated[bytes, 11] = b""
    cache_imports: Annotated[list[CacheOptionsEntry], 12] = []
    frontend_inputs: Annotated[dict[str, bytes], 13] = {}
    evaluate: Annotated[bool, 14] = False
    source_policies: Annotated[list[Policy], 15] = []


class SolveResponse(Message):
    ref: Annotated[str, 1] = ""
    result: Annotated[Result | None, 3] = None


class FileRange(Message):
    offset: Annotated[int, 1] = 0
    length: Annotated[int, 2] = 0


class ReadFileRequest(Message):
    ref: Annotated[str, 1] = ""
    file_path: Annotated[str, 2] = ""
    range: Annotated[FileRange | None, 3] = None
    mount_index: Annotated[Int32, 4] = 0


class ReadFileResponse(Message):
    data: Annotated[bytes, 1] = b""


class ReadDirRequest(Message):
    ref: Annotated[str, 1] = ""
    dir_path: Annotated[str, 2] = ""
    include_pattern: Annotated[str, 3] = ""
    mount_index: Annotated[Int32, 4] = 0


class ReadDirResponse(Message):
    entries: Annotated[list[Stat], 1] = []


class StatFileRequest(Message):
    ref: Annotated[str, 1] = ""
    path: Annotated[str, 2] = ""
    mount_index: Annotated[Int32, 3] = 0


class StatFileResponse(Message):
    stat: Annotated[Stat | None, 1] = None


class EvaluateRequest(Message):
    ref: Annotated[str, 1] = ""


class ApiCap(Message):
    id: Annotated[str, 1] = ""
    enabled: Annotated[bool, 2] = False
    deprecated: Annotated[bool, 3] = False
    disabled_reason: Annotated[str, 4] = ""
    disabled_reason_message: Annotated[str, 5] = ""
    disabled_alternative: Annotated[str, 6] = ""


class PongResponse(Message):
    frontend_caps: Annotated[list[ApiCap], 1] = []
    llb_caps: Annotated[list[ApiCap], 2] = []
    workers: Annotated[list[WorkerRecord], 3] = []


class WarnRequest(Message):
    digest: Annotated[str, 1] = ""
    level: Annotated[int, 2] = 0
    short: Annotated[bytes, 3] = b""
    detail: Annotated[list[bytes], 4] = []
    url: Annotated[str, 5] = ""
    info: Annotated[SourceInfo | None, 6] = None
    ranges: Annotated[list[Range], 7] = []


class NewContainerRequest(Message):
    container_id: Annotated[str, 1] = ""
    mounts: Annotated[list[Mount], 2] = []
    network: Annotated[Enum, 3] = 0
    platform: Annotated[Platform | None, 4] = None
    constraints: Annotated[WorkerConstraints | None, 5] = None
    extra_hosts: Annotated[list[HostIP], 6] = []
    hostname: Annotated[str, 7] = ""


class ReleaseContainerRequest(Message):
    container_id: Annotated[str, 1] = ""


class InitMessage(Message):
    container_id: Annotated[str, 1] = ""
    meta: Annotated[Meta | None, 2] = None
    fds: Annotated[list[Uint32], 3] = []
    tty: Annotated[bool, 4] = False
    security: Annotated[Enum, 5] = 0
    secretenv: Annotated[list[SecretEnv], 6] = []


class FdMessage(Message):
    fd: Annotated[Uint32, 1] = 0
    eof: Annotated[bool, 2] = False
    data: Annotated[bytes, 3] = b""


class ResizeMessage(Message):
    rows: Annotated[Uint32, 1] = 0
    cols: Annotated[Uint32, 2] = 0


class ExitMessage(Message):
    code: Annotated[Uint32, 1] = 0
    error: Annotated[Status | None, 2] = None


class SignalMessage(Message):
    name: Annotated[str, 1] = ""


class ExecMessage(Message):
    process_id: Annotated[str, 1] = ""
    init: Annotated[InitMessage | None, 2] = None
    file: Annotated[FdMessage | None, 3] = None
    resize: Annotated[ResizeMessage | None, 4] = None
    started: Annotated[Empty | None, 5] = None
    exit: Annotated[ExitMessage | None, 6] = None
    done: Annotated[Empty | None, 7] = None
    signal: Annotated[SignalMessage | None, 8] = None
