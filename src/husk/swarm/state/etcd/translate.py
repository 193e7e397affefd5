"""Records and transactions to etcd's messages and back. Pure.

The record (kind, key) is etcd's key `/husk/<kind>/<key>`; its version is etcd's `mod_revision`.
"""

from collections.abc import Iterable, Sequence

from husk.swarm.state.etcd.messages import (
    DELETED,
    EQUAL,
    MOD_REVISION,
    Compare,
    DeleteRangeRequest,
    KeyValue,
    PutRequest,
    RangeRequest,
    RequestOp,
    TxnRequest,
    TxnResponse,
    WatchEvent,
)
from husk.swarm.state.transactions import NEW, Check, ClusterRecord, Delete, News, Put, Step, with_version

_ROOT = b"/husk/"


def key_of(kind: str, key: str) -> bytes:
    return b"%s%s/%s" % (_ROOT, kind.encode(), key.encode())


def range_of(kind: str) -> tuple[bytes, bytes]:
    """All keys of a kind, or all there are: from the first of them to before the second."""
    first = b"%s%s/" % (_ROOT, kind.encode()) if kind else _ROOT
    return first, first[:-1] + bytes([first[-1] + 1])


def name_of(key: bytes) -> tuple[str, str]:
    kind, _, rest = key.removeprefix(_ROOT).decode(errors="surrogateescape").partition("/")
    return kind, rest


def record_of(pair: KeyValue) -> ClusterRecord:
    kind, key = name_of(pair.key)
    return ClusterRecord(kind, key, with_version(pair.value, pair.mod_revision), pair.mod_revision, pair.lease)


def transaction(steps: Iterable[Step]) -> TxnRequest:
    """Write the steps as a transaction. If a version is wrong, the answer tells what is there instead, step by step."""
    request = TxnRequest()
    for step in steps:
        key = key_of(step.kind, step.key)
        if step.version is not None:
            compare = Compare(result=EQUAL, target=MOD_REVISION, key=key, mod_revision=step.version)
            request.compare.append(compare)
        match step:
            case Put():
                with_version(step.body, NEW)
                put = PutRequest(key=key, value=step.body, lease=step.lease)
                request.success.append(RequestOp(request_put=put))
            case Delete():
                request.success.append(RequestOp(request_delete_range=DeleteRangeRequest(key=key)))
            case Check():
                pass
        request.failure.append(RequestOp(request_range=RangeRequest(key=key)))
    return request


def found_instead(answer: TxnResponse) -> list[KeyValue | None]:
    """Read each step's record in the answer to a transaction that did not succeed; None if there is no record."""
    ranges = [response.response_range for response in answer.responses]
    return [one.kvs[0] if one is not None and one.kvs else None for one in ranges]


def stale_names(steps: Sequence[Step], found: Sequence[KeyValue | None]) -> list[tuple[str, str]]:
    versions = [pair.mod_revision if pair is not None else NEW for pair in found]
    pairs = zip(steps, versions, strict=True)
    return [(step.kind, step.key) for step, version in pairs if step.version not in (None, version)]


def done_before(steps: Sequence[Step], found: Sequence[KeyValue | None]) -> int:
    """The revision of a transaction whose answer was lost, if all is as it would have made it; else 0."""
    revisions = set()
    for step, pair in zip(steps, found, strict=True):
        match step:
            case Put():
                if pair is None or pair.value != step.body or pair.lease != step.lease:
                    return NEW
                revisions.add(pair.mod_revision)
            case Delete():
                if pair is not None:
                    return NEW
            case Check():
                pass
    return revisions.pop() if len(revisions) == 1 else NEW


def news_of(events: Iterable[WatchEvent]) -> list[News]:
    """One for each revision."""
    found: dict[int, News] = {}
    for event in events:
        if event.kv is None:
            continue
        news = found.get(event.kv.mod_revision, News(event.kv.mod_revision, False, ()))
        if event.type == DELETED:
            news = news._replace(gone=(*news.gone, name_of(event.kv.key)))
        else:
            news = news._replace(records=(*news.records, record_of(event.kv)))
        found[news.revision] = news
    return [found[revision] for revision in sorted(found)]
