"""Values that nobody may read from the disk."""

from pathlib import Path

import pytest

from husk.errors import SystemFault, Unavailable
from husk.storage.secrets.sealing import Sealer


def test_only_the_key_opens_it(tmp_path: Path):
    sealed = Sealer(tmp_path / "key").seal(b"value", "secret 1")
    assert b"value" not in sealed
    assert Sealer(tmp_path / "key").unseal(sealed, "secret 1") == b"value"
    with pytest.raises(SystemFault, match="cannot be unsealed"):
        Sealer(tmp_path / "other").unseal(sealed, "secret 1")


def test_one_value_cannot_take_the_place_of_another(tmp_path: Path):
    sealer = Sealer(tmp_path / "key")
    with pytest.raises(SystemFault):
        sealer.unseal(sealer.seal(b"value", "secret 1"), "secret 2")


def test_the_key_is_for_root_alone_and_made_once(tmp_path: Path):
    path = tmp_path / "key"
    sealer = Sealer(path)
    assert sealer.seal(b"x", "c") != sealer.seal(b"x", "c")
    assert path.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "key.new").exists()


def test_a_damaged_key_is_named(tmp_path: Path):
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(SystemFault, match="not a key"):
        Sealer(tmp_path / "key").seal(b"x", "c")


UNLOCK = b"u" * 32


def locked(path: Path) -> Sealer:
    """One as the next daemon finds it."""
    sealer = Sealer(path)
    sealer.settle(True)
    return sealer


def test_a_locked_key_is_on_no_disk_and_comes_back_with_the_unlock_key(tmp_path: Path):
    first = Sealer(tmp_path / "key")
    sealed = first.seal(b"value", "c")
    key = (tmp_path / "key").read_bytes()
    first.lock(UNLOCK)
    first.keep_locked()
    assert all(key not in path.read_bytes() for path in tmp_path.iterdir())
    second = locked(tmp_path / "key")
    with pytest.raises(Unavailable):
        second.unseal(sealed, "c")
    assert not second.unlock(b"x" * 32) and second.locked
    assert second.unlock(UNLOCK) and second.unseal(sealed, "c") == b"value"
    assert second.unlock_key() == UNLOCK


@pytest.mark.parametrize("wanted", [True, False])
def test_after_a_crash_in_between_the_record_decides(tmp_path: Path, wanted: bool):
    first = Sealer(tmp_path / "key")
    sealed = first.seal(b"value", "c")
    first.lock(UNLOCK)
    (tmp_path / "key.new").write_bytes(b"half")
    second = Sealer(tmp_path / "key")
    second.settle(wanted)
    assert [path.name for path in tmp_path.iterdir()] == ["key.lock" if wanted else "key"]
    assert second.locked == wanted
    assert not wanted or second.unlock(UNLOCK)
    assert second.unseal(sealed, "c") == b"value"


def test_taking_the_lock_away(tmp_path: Path):
    sealer = Sealer(tmp_path / "key")
    sealed = sealer.seal(b"value", "c")
    sealer.lock(UNLOCK)
    sealer.keep_locked()
    opened = locked(tmp_path / "key")
    opened.unlock(UNLOCK)
    opened.keep_open()
    opened.drop_lock()
    third = Sealer(tmp_path / "key")
    third.settle(False)
    assert third.unseal(sealed, "c") == b"value"
    third.forget()
    assert not list(tmp_path.iterdir())


def test_the_key_of_others_takes_the_place_of_ones_own(tmp_path: Path):
    theirs, ours = Sealer(tmp_path / "theirs"), Sealer(tmp_path / "ours")
    sealed = theirs.seal(b"value", "c")
    ours.seal(b"x", "c")
    ours.adopt(theirs.key())
    assert Sealer(tmp_path / "ours").unseal(sealed, "c") == b"value"
    ours.adopt(theirs.key(), UNLOCK)
    assert ours.unseal(sealed, "c") == b"value" and not (tmp_path / "ours").exists()
    again = locked(tmp_path / "ours")
    assert again.locked and again.unlock(UNLOCK)


def test_locks_follow_those_of_others(tmp_path: Path):
    sealer = Sealer(tmp_path / "key")
    sealed = sealer.seal(b"value", "c")
    sealer.follow(b"")
    assert (tmp_path / "key").exists()
    for key in (UNLOCK, b"v" * 32, b"v" * 32):
        sealer.follow(key)
        assert not (tmp_path / "key").exists() and locked(tmp_path / "key").unlock(key)
    assert not locked(tmp_path / "key").unlock(UNLOCK), "only the newest opens it"
    away = locked(tmp_path / "key")
    away.follow(b"")
    assert away.locked, "what is locked cannot follow"
    sealer.follow(b"")
    assert Sealer(tmp_path / "key").unseal(sealed, "c") == b"value" and not (tmp_path / "key.lock").exists()


def test_what_others_unlocked_meanwhile_is_locked_here_until_somebody_brings_the_key(tmp_path: Path):
    sealer = Sealer(tmp_path / "key")
    sealed = sealer.seal(b"value", "c")
    sealer.lock(UNLOCK)
    sealer.keep_locked()
    again = Sealer(tmp_path / "key")
    again.settle(False)
    assert again.locked and again.unlock(UNLOCK) and again.unseal(sealed, "c") == b"value"


def test_a_successors_key_takes_the_place_of_key_and_lock(tmp_path: Path):
    sealer = Sealer(tmp_path / "swarm.key")
    before = sealer.seal(b"value", "c")
    sealer.lock(UNLOCK)
    successor = sealer.successor("next")
    sealer.succeed(successor)  # there is none
    assert not successor.is_there and sealer.unseal(before, "c") == b"value"
    sealed = successor.seal(b"another", "c")
    assert successor.is_there and sealer.unseal(before, "c") == b"value"
    sealer.succeed(successor)
    assert sealer.unseal(sealed, "c") == b"another" and Sealer(tmp_path / "swarm.key").unseal(sealed, "c") == b"another"
    with pytest.raises(SystemFault, match="cannot be unsealed"):
        sealer.unseal(before, "c")
    assert [path.name for path in tmp_path.iterdir()] == ["swarm.key"]


def test_a_successor_that_is_locked_is_locked_in_its_place(tmp_path: Path):
    sealer = Sealer(tmp_path / "swarm.key")
    sealer.key()
    successor = sealer.successor("next")
    successor.adopt(b"k" * 32, UNLOCK)
    assert {path.name for path in tmp_path.iterdir()} == {"swarm.key", "swarm.next.lock"} and successor.is_there
    sealer.succeed(successor)
    assert [path.name for path in tmp_path.iterdir()] == ["swarm.lock"] and sealer.locked
    assert sealer.unlock(UNLOCK) and sealer.key() == b"k" * 32


def test_with_a_lock_file_alone_it_is_locked_before_anybody_says_so(tmp_path: Path):
    former = Sealer(tmp_path / "key")
    former.look()
    former.lock(UNLOCK)
    former.look()
    assert not former.locked, "the key itself is there, too"
    former.keep_locked()
    sealer = Sealer(tmp_path / "key")
    sealer.look()
    assert sealer.locked
    with pytest.raises(Unavailable):
        sealer.seal(b"x", "c")
    assert not (tmp_path / "key").exists(), "no other key is made"
    assert sealer.unlock(UNLOCK)
    sealer.settle(True)
    assert not sealer.locked, "who has unlocked it need not do that again when its record is known"
    sealer.close()
    assert sealer.locked and sealer.unlock(UNLOCK)
