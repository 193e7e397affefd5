"""Which keys and policies hosts must have, and in which order they come and go. Without a kernel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import InvalidParameter
from husk.kernel.xfrm import INWARD, OUTWARD, Policy
from husk.network.encryption import Party, derived, difference, mark_of, port_of, wanted

PORT = 4790
A, B, C = (Party(f"192.0.2.{number}", number) for number in (1, 2, 3))
OLD, NEW = b"o" * 32, b"n" * 32


def present(goal):
    return set(goal.keys), set(goal.policies)


def test_encrypted_networks_have_a_port_of_their_own():
    assert (port_of(4789), port_of(65535)) == (4790, 65534)


def test_both_sides_have_the_same_keys():
    here, there = wanted(A, [A, B], [OLD], PORT), wanted(B, [A, B], [OLD], PORT)
    assert here.keys == there.keys
    assert len(here.keys) == 2


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_no_two_directions_senders_or_epochs_share_a_key(first, second):
    parties = [Party("192.0.2.1", first), Party("192.0.2.2", second), Party("192.0.2.1", first ^ 1)]
    pairs = [(a, b) for a in parties for b in parties if a.address != b.address]
    keys = [derived(OLD, sender, receiver, mark_of(PORT)) for sender, receiver in pairs]
    # The receiver's epoch changes nothing: two of the pairs are one.
    assert len({key for _, key in keys}) == 3
    assert all(association.spi > 255 for association, _ in keys)


def test_the_first_key_sends_and_all_receive():
    goal = wanted(A, [B], [NEW, OLD], PORT)
    sending = [one for one in goal.keys if one.source == one.source.__class__(A.address)]
    assert sending == [derived(NEW, A, B, mark_of(PORT))[0]]
    assert len(goal.keys) == 3


def test_without_keys_nothing_may_pass():
    goal = wanted(A, [B], [], PORT)
    assert goal.keys == {}
    assert goal.policies == {Policy(direction, PORT, 4, mark_of(PORT)) for direction in (INWARD, OUTWARD)}


def test_a_new_key_comes_before_its_policy_and_the_old_goes_last():
    messages = difference(present(wanted(A, [B], [OLD, NEW], PORT)), wanted(A, [B], [NEW], PORT))
    assert [message.what for message in messages[:2]] == [
        "add a key for 192.0.2.1 to 192.0.2.2",
        "set policy for UDP port 4790",
    ]
    assert {message.what for message in messages[2:]} == {
        "delete a key for 192.0.2.1 to 192.0.2.2",
        "delete a key for 192.0.2.2 to 192.0.2.1",
    }
    assert len(messages) == 4


def test_a_host_that_leaves_takes_its_policies_and_keys_along():
    messages = difference(present(wanted(A, [B, C], [OLD], PORT)), wanted(A, [B], [OLD], PORT))
    assert [message.what.split()[0] for message in messages] == ["delete"] * 4


def test_nothing_is_done_where_nothing_is_different():
    goal = wanted(A, [B, C], [OLD, NEW], PORT)
    assert difference(present(goal), goal) == []


def test_short_keys_are_refused():
    with pytest.raises(InvalidParameter, match="at least 16 bytes"):
        wanted(A, [B], [b"short"], PORT)
