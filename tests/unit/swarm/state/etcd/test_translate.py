"""Records to etcd's messages and back, without etcd."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import InvalidParameter
from husk.swarm.state.etcd.messages import DELETED, KeyValue, RangeResponse, ResponseOp, TxnResponse, WatchEvent
from husk.swarm.state.etcd.translate import (
    done_before,
    found_instead,
    key_of,
    name_of,
    news_of,
    range_of,
    record_of,
    stale_names,
    transaction,
)
from husk.swarm.state.transactions import NEW, Check, Delete, Put, Step, version_in

KINDS = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)
KEYS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(KINDS, KEYS)
def test_a_name_is_found_in_its_key_and_within_its_kind_and_no_other(kind: str, key: str):
    raw = key_of(kind, key)
    assert name_of(raw) == (kind, key)
    for one in (kind, ""):
        first, behind = range_of(one)
        assert first <= raw < behind
    for other in (kind + "s", kind[:-1] + "\x01", "task"):
        first, behind = range_of(other)
        assert (first <= raw < behind) == (other == kind)


def test_a_transaction_says_what_must_be_and_asks_what_is_instead():
    request = transaction(
        [Put("a", "1", b"{}", NEW, lease=7), Put("a", "2", b"{}"), Delete("a", "3", 5), Check("b", "4", 6)]
    )
    assert [(c.key, c.mod_revision) for c in request.compare] == [
        (b"/husk/a/1", 0),
        (b"/husk/a/3", 5),
        (b"/husk/b/4", 6),
    ]
    put = request.success[0].request_put
    assert put is not None and (put.value, put.lease) == (b"{}", 7)
    deletion = request.success[2].request_delete_range
    assert deletion is not None and deletion.key == b"/husk/a/3"
    assert len(request.success) == 3 and len(request.failure) == 4
    with pytest.raises(InvalidParameter):
        transaction([Put("a", "1", b"no document")])


def test_that_nothing_must_be_there_reaches_the_wire():
    """A field of protobuf that is 0 is left out as a rule, and etcd would compare nothing."""
    request = transaction([Put("a", "1", b"{}", NEW)])
    assert type(request).decode(request.encode()).compare[0].mod_revision == 0


STEPS: list[Step] = [Put("a", "1", b'{"x":1}', 3), Delete("a", "2", 4), Check("a", "3", 5)]


def pair(value: bytes = b"{}", revision: int = 9, lease: int = 0) -> KeyValue:
    return KeyValue(key=b"/husk/a/1", value=value, mod_revision=revision, lease=lease)


def test_what_is_there_instead():
    answer = TxnResponse(
        responses=[ResponseOp(response_range=RangeResponse(kvs=[pair()])), ResponseOp(response_range=RangeResponse())]
    )
    assert [one and one.mod_revision for one in found_instead(answer)] == [9, None]
    assert stale_names(STEPS, [pair(revision=3), None, pair(revision=6)]) == [("a", "2"), ("a", "3")]
    assert stale_names([Put("a", "1", b"{}")], [pair()]) == []


@pytest.mark.parametrize(
    ("found", "revision"),
    [
        ([pair(b'{"x":1}'), None, pair(revision=5)], 9),
        ([pair(b'{"x":2}'), None, None], NEW),
        ([pair(b'{"x":1}', lease=1), None, None], NEW),
        ([pair(b'{"x":1}'), pair(), None], NEW),
        ([None, None, None], NEW),
    ],
)
def test_a_transaction_whose_answer_was_lost_is_known_by_what_it_made(found: list[KeyValue | None], revision: int):
    assert done_before(STEPS, found) == revision


def test_a_transaction_that_left_no_trace_is_not_taken_for_done():
    assert done_before([Delete("a", "1", 5)], [None]) == NEW


def test_news_are_told_by_revision():
    events = [
        WatchEvent(kv=KeyValue(key=b"/husk/a/1", value=b"{}", mod_revision=5)),
        WatchEvent(type=DELETED, kv=KeyValue(key=b"/husk/b/2", mod_revision=5)),
        WatchEvent(kv=KeyValue(key=b"/husk/a/1", value=b"{}", mod_revision=6)),
        WatchEvent(),
    ]
    first, second = news_of(events)
    assert (first.revision, [r.name for r in first.records], first.gone) == (5, [("a", "1")], (("b", "2"),))
    assert second.revision == 6 and not second.gone and not second.all


def test_a_record_carries_its_version():
    record = record_of(pair(b'{"version":1}', 12, 3))
    assert (record.name, record.version, record.lease, version_in(record.body)) == (("a", "1"), 12, 3, 12)
