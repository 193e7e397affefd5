"""With autolock the disk has the key of the member of etcd only sealed, and each crash leaves one that can be used."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from husk.errors import Unavailable
from husk.storage.secrets import key_files
from husk.storage.secrets.member_key import MemberKey
from husk.storage.secrets.sealing import Sealer
from tests.support.memory import NoMounts

KEY = b"-----BEGIN PRIVATE KEY----- the member's\n"
UNLOCK = bytes(range(32))
OPEN, SEALED = ["member.key"], ["member.key", "member.sealed"]


class Host:
    """The directory of a member, and what is in memory of the host."""

    def __init__(self, directory: Path) -> None:
        self.disk = directory / "swarm.etcd"
        self.disk.mkdir()
        self.path = self.disk / "member.key"
        self.path.write_bytes(KEY)
        self.memory = directory / "run" / "swarm.etcd"
        self.sealer = Sealer(directory / "swarm.key")
        self.sealer.key()
        self.key = self.daemon()

    def daemon(self, memory: Path | None = None) -> MemberKey:
        """The next one."""
        return MemberKey(self.path, memory or self.memory, self.sealer, NoMounts())

    def lock(self) -> None:
        self.sealer.lock(UNLOCK)
        self.sealer.keep_locked()

    def boot(self) -> MemberKey:
        NoMounts().drop(self.memory)
        self.sealer = Sealer(self.disk.parent / "swarm.key")
        self.sealer.look()
        return self.daemon()

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.disk.iterdir())

    def in_clear(self) -> bool:
        """Tell if it is on the disk."""
        return any(KEY in path.read_bytes() for path in self.disk.iterdir() if not path.is_symlink())


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_with_autolock_it_is_in_memory_and_on_the_disk_sealed(host: Host) -> None:
    former = host.path.open("rb")
    host.key.keep(True)
    assert host.files == SEALED and not host.in_clear() and host.path.read_bytes() == KEY
    assert host.path.stat().st_mode & 0o777 == 0o600
    with former:
        assert KEY not in former.read(), "what was there is overwritten"
    before = host.path.lstat().st_ino
    host.key.keep(True)
    assert host.path.lstat().st_ino == before and host.key.open(), "once"
    host.key.keep(False)
    assert host.files == OPEN and host.path.read_bytes() == KEY and not host.path.is_symlink()
    assert not host.memory.exists()
    host.key.keep(False)
    assert host.path.read_bytes() == KEY


def test_after_a_boot_it_wants_the_unlock_key(host: Host) -> None:
    host.key.keep(True)
    host.lock()
    host.sealer = Sealer(host.disk.parent / "swarm.key")
    host.sealer.look()
    assert host.sealer.locked and host.daemon().open(), "a new daemon finds it"
    key = host.boot()
    assert not key.open() and not host.path.exists()
    with pytest.raises(Unavailable):
        key.keep(False)
    assert not host.sealer.unlock(bytes(32)) and not key.open()
    assert host.sealer.unlock(UNLOCK) and key.open() and host.path.read_bytes() == KEY
    assert not host.in_clear()


def test_another_exec_root(host: Host, tmp_path: Path) -> None:
    host.key.keep(True)
    other = host.daemon(tmp_path / "other")
    assert other.open() and host.path.readlink() == tmp_path / "other" / "member.key"
    assert host.path.read_bytes() == KEY and not host.memory.exists()


@pytest.mark.parametrize("end", ["left", "not sealed any more"])
def test_a_locked_swarm_goes_on_below_a_former_exec_root_and_leaves_nothing_there(
    host: Host, tmp_path: Path, end: str
) -> None:
    host.key.keep(True)
    host.lock()
    host.sealer = Sealer(host.disk.parent / "swarm.key")
    host.sealer.look()
    other = host.daemon(tmp_path / "other")
    assert other.open() and host.path.readlink().parent == host.memory, "it cannot be unsealed"
    if end == "left":
        other.drop()
    else:
        assert host.sealer.unlock(UNLOCK)
        other.keep(False)
        assert host.path.read_bytes() == KEY
    assert not host.memory.exists() and not (tmp_path / "other").exists()


def test_memory_that_somebody_took_away_is_filled_again(host: Host) -> None:
    host.key.keep(True)
    NoMounts().drop(host.memory)
    host.key.keep(True)
    assert host.path.read_bytes() == KEY and host.files == SEALED and not host.in_clear()


def test_where_there_is_none(host: Host) -> None:
    host.path.unlink()
    for sealed in (True, False):
        host.key.keep(sealed)
        assert host.files == [] and host.key.open()


class Killed(BaseException):
    """By kill -9."""


def dying(monkeypatch: pytest.MonkeyPatch, after: int, work: Callable[[], None]) -> bool:
    """Tell if it was killed before so many changes of the disk were done."""
    left = after

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return change(*args, **options)

        return call

    with monkeypatch.context() as patch:
        for owner, name in (
            (os, "open"),
            (os, "link"),
            (os, "fsync"),
            (Path, "open"),
            (Path, "symlink_to"),
            (Path, "rename"),
            (Path, "unlink"),
            (NoMounts, "make"),
            (NoMounts, "drop"),
        ):
            patch.setattr(owner, name, counted(getattr(owner, name)))
        try:
            work()
        except Killed:
            return True
    return False


@pytest.mark.parametrize("boots", [False, True], ids=["the daemon", "the host"])
@pytest.mark.parametrize("seal", [True, False], ids=["sealing", "unsealing"])
@pytest.mark.parametrize("again", [True, False], ids=["then sealed", "then open"])
def test_a_crash_at_any_point_leaves_one_that_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boots: bool, seal: bool, again: bool
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for after in range(1000):
        directory = tmp_path / str(after)
        directory.mkdir()
        host = Host(directory)
        host.key.keep(not seal)
        killed = dying(monkeypatch, after, lambda host=host: host.key.keep(seal))  # type: ignore[misc]
        if boots:
            NoMounts().drop(host.memory)
        key = host.daemon()
        assert key.open() and host.path.read_bytes() == KEY, f"killed after {after} changes"
        key.keep(again)
        assert host.files == (SEALED if again else OPEN), f"killed after {after} changes"
        assert host.path.read_bytes() == KEY and host.in_clear() is not again
        if not killed:
            break
    assert 5 < after < 100


def test_a_full_disk_keeps_what_there_is(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    write = key_files.write

    def full(path: Path, content: bytes) -> None:
        if path.parent == host.disk:
            key_files.beside(path).write_bytes(content[:3])
            raise OSError(28, "No space left on device")
        write(path, content)

    for sealed, files in ((True, SEALED), (False, OPEN)):
        monkeypatch.setattr(key_files, "write", full)
        with pytest.raises(OSError, match="No space left"):
            host.key.keep(sealed)
        assert host.key.open() and host.path.read_bytes() == KEY
        monkeypatch.setattr(key_files, "write", write)
        host.key.keep(sealed)
        assert host.files == files and host.path.read_bytes() == KEY
