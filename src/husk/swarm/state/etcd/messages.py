"""Messages of etcd (`api/etcdserverpb/rpc.proto`, `api/mvccpb/kv.proto`): numbers and types are the public protocol's.

Fields that nobody here asks for are left out, and ignored when they come.
"""

from typing import Annotated

from husk.rpc.protobuf import Enum, Message, Uint64

RANGE = "/etcdserverpb.KV/Range"
TXN = "/etcdserverpb.KV/Txn"
COMPACT = "/etcdserverpb.KV/Compact"
WATCH = "/etcdserverpb.Watch/Watch"
GRANT = "/etcdserverpb.Lease/LeaseGrant"
REVOKE = "/etcdserverpb.Lease/LeaseRevoke"
KEEP_ALIVE = "/etcdserverpb.Lease/LeaseKeepAlive"
STATUS = "/etcdserverpb.Maintenance/Status"
ALARM = "/etcdserverpb.Maintenance/Alarm"
DEFRAGMENT = "/etcdserverpb.Maintenance/Defragment"

MEMBER_LIST = "/etcdserverpb.Cluster/MemberList"
MEMBER_ADD = "/etcdserverpb.Cluster/MemberAdd"
MEMBER_PROMOTE = "/etcdserverpb.Cluster/MemberPromote"
MEMBER_REMOVE = "/etcdserverpb.Cluster/MemberRemove"

# Of a comparison: how, and what of a key.
EQUAL = 0
MOD_REVISION = 2
# Of an event.
PUT, DELETED = 0, 1
# Of alarms: what is asked for, and which.
TELL, END = 0, 2
NO_SPACE = 1


class Header(Message):
    cluster_id: Annotated[Uint64, 1] = 0
    member_id: Annotated[Uint64, 2] = 0
    revision: Annotated[int, 3] = 0


class KeyValue(Message):
    key: Annotated[bytes, 1] = b""
    mod_revision: Annotated[int, 3] = 0
    value: Annotated[bytes, 5] = b""
    lease: Annotated[int, 6] = 0


class RangeRequest(Message):
    key: Annotated[bytes, 1] = b""
    range_end: Annotated[bytes, 2] = b""
    limit: Annotated[int, 3] = 0
    revision: Annotated[int, 4] = 0


class RangeResponse(Message):
    header: Annotated[Header | None, 1] = None
    kvs: Annotated[list[KeyValue], 2] = []
    more: Annotated[bool, 3] = False


class PutRequest(Message):
    key: Annotated[bytes, 1] = b""
    value: Annotated[bytes, 2] = b""
    lease: Annotated[int, 3] = 0


class DeleteRangeRequest(Message):
    key: Annotated[bytes, 1] = b""


class RequestOp(Message):
    request_range: Annotated[RangeRequest | None, 1] = None
    request_put: Annotated[PutRequest | None, 2] = None
    request_delete_range: Annotated[DeleteRangeRequest | None, 3] = None


class ResponseOp(Message):
    response_range: Annotated[RangeResponse | None, 1] = None


class Compare(Message):
    result: Annotated[Enum, 1] = EQUAL
    target: Annotated[Enum, 2] = 0
    key: Annotated[bytes, 3] = b""
    # One of several that may be compared with: a 0 has to be said.
    mod_revision: Annotated[int | None, 6] = None


class TxnRequest(Message):
    compare: Annotated[list[Compare], 1] = []
    success: Annotated[list[RequestOp], 2] = []
    failure: Annotated[list[RequestOp], 3] = []


class TxnResponse(Message):
    header: Annotated[Header | None, 1] = None
    succeeded: Annotated[bool, 2] = False
    responses: Annotated[list[ResponseOp], 3] = []


class CompactionRequest(Message):
    revision: Annotated[int, 1] = 0
    physical: Annotated[bool, 2] = False


class WatchCreateRequest(Message):
    key: Annotated[bytes, 1] = b""
    range_end: Annotated[bytes, 2] = b""
    start_revision: Annotated[int, 3] = 0
    progress_notify: Annotated[bool, 4] = False
    fragment: Annotated[bool, 8] = False


class WatchRequest(Message):
    create_request: Annotated[WatchCreateRequest | None, 1] = None


class WatchEvent(Message):
    type: Annotated[Enum, 1] = PUT
    kv: Annotated[KeyValue | None, 2] = None


class WatchResponse(Message):
    header: Annotated[Header | None, 1] = None
    created: Annotated[bool, 3] = False
    canceled: Annotated[bool, 4] = False
    compact_revision: Annotated[int, 5] = 0
    cancel_reason: Annotated[str, 6] = ""
    fragment: Annotated[bool, 7] = False
    events: Annotated[list[WatchEvent], 11] = []


class LeaseGrantRequest(Message):
    ttl: Annotated[int, 1] = 0


class LeaseGrantResponse(Message):
    id: Annotated[int, 2] = 0
    ttl: Annotated[int, 3] = 0
    error: Annotated[str, 4] = ""


class LeaseRequest(Message):
    """Of a revocation, and of a sign of life."""

    id: Annotated[int, 1] = 0


class LeaseKeepAliveResponse(Message):
    id: Annotated[int, 2] = 0
    ttl: Annotated[int, 3] = 0


class StatusRequest(Message):
    pass


class StatusResponse(Message):
    header: Annotated[Header | None, 1] = None
    version: Annotated[str, 2] = ""
    db_size: Annotated[int, 3] = 0
    leader: Annotated[Uint64, 4] = 0


class AlarmRequest(Message):
    action: Annotated[Enum, 1] = TELL
    member_id: Annotated[Uint64, 2] = 0
    alarm: Annotated[Enum, 3] = 0


class AlarmMember(Message):
    member_id: Annotated[Uint64, 1] = 0
    alarm: Annotated[Enum, 2] = 0


class AlarmResponse(Message):
    header: Annotated[Header | None, 1] = None
    alarms: Annotated[list[AlarmMember], 2] = []


class MemberMessage(Message):
    """One of the cluster. Its name is empty until it has been started."""

    id: Annotated[Uint64, 1] = 0
    name: Annotated[str, 2] = ""
    peer_urls: Annotated[list[str], 3] = []
    client_urls: Annotated[list[str], 4] = []
    is_learner: Annotated[bool, 5] = False


class MemberAddRequest(Message):
    peer_urls: Annotated[list[str], 1] = []
    is_learner: Annotated[bool, 2] = False


class MemberRequest(Message):
    """Of a promotion, and of a removal."""

    id: Annotated[Uint64, 1] = 0


class MemberListRequest(Message):
    pass


class MemberListResponse(Message):
    members: Annotated[list[MemberMessage], 2] = []
