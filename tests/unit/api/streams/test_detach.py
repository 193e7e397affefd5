"""Detach keys: nothing typed is lost, and the keys are seen however the input is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.api.streams.detach import DEFAULT_KEYS, DetachMatcher, parse_keys
from husk.errors import InvalidParameter


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", DEFAULT_KEYS),
        ("ctrl-p,ctrl-q", b"\x10\x11"),
        ("ctrl-a", b"\x01"),
        ("ctrl-@,ctrl-[,ctrl-\\,ctrl-],ctrl-^,ctrl-_", b"\x00\x1b\x1c\x1d\x1e\x1f"),
        ("a,Z", b"aZ"),
        ("@,1,DEL", b"@1\x7f"),
    ],
)
def test_keys_are_read(text: str, keys: bytes) -> None:
    assert parse_keys(text) == keys


@pytest.mark.parametrize("text", ["ctrl-", "ctrl-1", "ctrl-A", "abc", ",", "a,", "é", "ctrl-é", "DELETE", "del"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse_keys(text)
    assert caught.value.message == f"Invalid detach keys ({text}) provided"


keys = st.binary(min_size=1, max_size=4).map(lambda b: bytes(x % 3 for x in b))
inputs = st.lists(st.binary(max_size=6).map(lambda b: bytes(x % 3 for x in b)))


@given(keys, inputs)
def test_the_first_occurrence_detaches_and_all_before_it_arrives(keys: bytes, pieces: list[bytes]) -> None:
    matcher = DetachMatcher(keys)
    typed, seen, detached = b"", b"", False
    for piece in pieces:
        typed += piece
        fed = matcher.feed(piece)
        seen += fed.data
        if fed.detached:
            detached = True
            break
    if not detached:
        seen += matcher.flush()
    position = typed.find(keys)
    assert detached is (position >= 0)
    assert seen == (typed[:position] if detached else typed)


def test_an_unfinished_beginning_waits_for_the_next_key() -> None:
    matcher = DetachMatcher(b"\x10\x11")
    assert matcher.feed(b"a\x10") == (b"a", False)
    assert matcher.feed(b"\x10") == (b"\x10", False)
    assert matcher.feed(b"b") == (b"\x10b", False)
