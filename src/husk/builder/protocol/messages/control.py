"""The service Control (`api/services/control/control.proto`, `api/types/worker.proto`)."""

from typing import Annotated

from husk.builder.graph.ops import Platform, ProgressGroup, Range, SourceInfo
from husk.builder.protocol.messages.common import Status, Timestamp
from husk.builder.protocol.messages.source_policy import Policy
from husk.rpc.protobuf import Enum, Int32, Message

BUILD_STARTED, BUILD_COMPLETE, BUILD_DELETED = range(3)


class PruneRequest(Message):
    filter: Annotated[list[str], 1] = []
    all: Annotated[bool, 2] = False
    keep_duration: Annotated[int, 3] = 0
    reserved_space: Annotated[int, 4] = 0
    max_used_space: Annotated[int, 5] = 0
    min_free_space: Annotated[int, 6] = 0


class DiskUsageRequest(Message):
    filter: Annotated[list[str], 1] = []
    age_limit: Annotated[int, 2] = 0


class UsageRecord(Message):
    id: Annotated[str, 1] = ""
    mutable: Annotated[bool, 2] = False
    in_use: Annotated[bool, 3] = False
    size: Annotated[int, 4] = 0
    parent: Annotated[str, 5] = ""
    created_at: Annotated[Timestamp | None, 6] = None
    last_used_at: Annotated[Timestamp | None, 7] = None
    usage_count: Annotated[int, 8] = 0
    description: Annotated[str, 9] = ""
    record_type: Annotated[str, 10] = ""
    shared: Annotated[bool, 11] = False
    parents: Annotated[list[str], 12] = []


class DiskUsageResponse(Message):
    record: Annotated[list[UsageRecord], 1] = []


# --- builds ----------------------------------------------------------------------------------------------------------


class CacheOptionsEntry(Message):
    type: Annotated[str, 1] = ""
    attrs: Annotated[dict[str, str], 2] = {}


class CacheOptions(Message):
    export_ref: Annotated[str, 1] = ""
    import_refs: Annotated[list[str], 2] = []
    export_attrs: Annotated[dict[str, str], 3] = {}
    exports: Annotated[list[CacheOptionsEntry], 4] = []
    imports: Annotated[list[CacheOptionsEntry], 5] = []


class Exporter(Message):
    type: Annotated[str, 1] = ""
    attrs: Annotated[dict[str, str], 2] = {}


class SolveRequest(Message):
    ref: Annotated[str, 1] = ""
    definition: Annotated[bytes | None, 2] = None  # an encoded `Definition`: what it costs to read is not spent here
    old_exporter: Annotated[str, 3] = ""
    old_exporter_attrs: Annotated[dict[str, str], 4] = {}
    session: Annotated[str, 5] = ""
    frontend: Annotated[str, 6] = ""
    frontend_attrs: Annotated[dict[str, str], 7] = {}
    cache: Annotated[CacheOptions | None, 8] = None
    entitlements: Annotated[list[str], 9] = []
    frontend_inputs: Annotated[dict[str, bytes], 10] = {}
    internal: Annotated[bool, 11] = False
    source_policy: Annotated[Policy | None, 12] = None
    exporters: Annotated[list[Exporter], 13] = []
    enable_session_exporter: Annotated[bool, 14] = False
    source_policy_session: Annotated[str, 15] = ""


class SolveResponse(Message):
    exporter_response: Annotated[dict[str, str], 1] = {}


class StatusRequest(Message):
    ref: Annotated[str, 1] = ""


class Vertex(Message):
    digest: Annotated[str, 1] = ""
    inputs: Annotated[list[str], 2] = []
    name: Annotated[str, 3] = ""
    cached: Annotated[bool, 4] = False
    started: Annotated[Timestamp | None, 5] = None
    completed: Annotated[Timestamp | None, 6] = None
    error: Annotated[str, 7] = ""
    progress_group: Annotated[ProgressGroup | None, 8] = None


class VertexStatus(Message):
    id: Annotated[str, 1] = ""
    vertex: Annotated[str, 2] = ""
    name: Annotated[str, 3] = ""
    current: Annotated[int, 4] = 0
    total: Annotated[int, 5] = 0
    timestamp: Annotated[Timestamp | None, 6] = None
    started: Annotated[Timestamp | None, 7] = None
    completed: Annotated[Timestamp | None, 8] = None


class VertexLog(Message):
    vertex: Annotated[str, 1] = ""
    timestamp: Annotated[Timestamp | None, 2] = None
    stream: Annotated[int, 3] = 0
    msg: Annotated[bytes, 4] = b""


class VertexWarning(Message):
    vertex: Annotated[str, 1] = ""
    level: Annotated[int, 2] = 0
    short: Annotated[bytes, 3] = b""
    detail: Annotated[list[bytes], 4] = []
    url: Annotated[str, 5] = ""
    info: Annotated[SourceInfo | None, 6] = None
    ranges: Annotated[list[Range], 7] = []


class StatusResponse(Message):
    vertexes: Annotated[list[Vertex], 1] = []
    statuses: Annotated[list[VertexStatus], 2] = []
    logs: Annotated[list[VertexLog], 3] = []
    warnings: Annotated[list[VertexWarning], 4] = []


# --- workers ---------------------------------------------------------------------------------------------------------


class GCPolicy(Message):
    all: Annotated[bool, 1] = False
    keep_duration: Annotated[int, 2] = 0
    reserved_space: Annotated[int, 3] = 0
    filters: Annotated[list[str], 4] = []
    max_used_space: Annotated[int, 5] = 0
    min_free_space: Annotated[int, 6] = 0


class BuildkitVersion(Message):
    package: Annotated[str, 1] = ""
    version: Annotated[str, 2] = ""
    revision: Annotated[str, 3] = ""
    dockerfile_version: Annotated[str, 4] = ""


class WorkerRecord(Message):
    id: Annotated[str, 1] = ""
    labels: Annotated[dict[str, str], 2] = {}
    platforms: Annotated[list[Platform], 3] = []
    gc_policy: Annotated[list[GCPolicy], 4] = []
    buildkit_version: Annotated[BuildkitVersion | None, 5] = None


class ListWorkersRequest(Message):
    filter: Annotated[list[str], 1] = []


class ListWorkersResponse(Message):
    record: Annotated[list[WorkerRecord], 1] = []


class InfoRequest(Message):
    pass


class InfoResponse(Message):
    buildkit_version: Annotated[BuildkitVersion | None, 1] = None


# --- history ---------------------------------------------------------------------------------------------------------


class Descriptor(Message):
    media_type: Annotated[str, 1] = ""
    digest: Annotated[str, 2] = ""
    size: Annotated[int, 3] = 0
    annotations: Annotated[dict[str, str], 5] = {}


class BuildResultInfo(Message):
    result: Annotated[Descriptor | None, 1] = None
    attestations: Annotated[list[Descriptor], 2] = []
    results: Annotated[dict[int, Descriptor], 3] = {}


class BuildHistoryRequest(Message):
    active_only: Annotated[bool, 1] = False
    ref: Annotated[str, 2] = ""
    early_exit: Annotated[bool, 3] = False
    filter: Annotated[list[str], 4] = []
    limit: Annotated[Int32, 5] = 0


class BuildHistoryRecord(Message):
    ref: Annotated[str, 1] = ""
    frontend: Annotated[str, 2] = ""
    frontend_attrs: Annotated[dict[str, str], 3] = {}
    exporters: Annotated[list[Exporter], 4] = []
    error: Annotated[Status | None, 5] = None
    created_at: Annotated[Timestamp | None, 6] = None
    completed_at: Annotated[Timestamp | None, 7] = None
    logs: Annotated[Descriptor | None, 8] = None
    exporter_response: Annotated[dict[str, str], 9] = {}
    result: Annotated[BuildResultInfo | None, 10] = None
    results: Annotated[dict[str, BuildResultInfo], 11] = {}
    generation: Annotated[Int32, 12] = 0
    trace: Annotated[Descriptor | None, 13] = None
    pinned: Annotated[bool, 14] = False
    cached_steps: Annotated[Int32, 15] = 0
    total_steps: Annotated[Int32, 16] = 0
    completed_steps: Annotated[Int32, 17] = 0
    external_error: Annotated[Descriptor | None, 18] = None
    warnings: Annotated[Int32, 19] = 0


class BuildHistoryEvent(Message):
    type: Annotated[Enum, 1] = BUILD_STARTED
    record: Annotated[BuildHistoryRecord | None, 2] = None


class UpdateBuildHistoryRequest(Message):
    ref: Annotated[str, 1] = ""
    pinned: Annotated[bool, 2] = False
    delete: Annotated[bool, 3] = False
    finalize: Annotated[bool, 4] = False


class UpdateBuildHistoryResponse(Message):
    pass
