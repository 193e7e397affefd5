"""The lock of a swarm: its files, its record, and in which order they change."""

from pathlib import Path

import pytest

from husk.errors import DiskFault, InvalidParameter, Unauthorized
from husk.storage.secrets.sealing import Sealer
from husk.swarm.membership.autolock import Autolock, new_key, read_key, write_key
from husk.swarm.membership.founding import new_swarm
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.model.swarm import Swarm


class Host:
    """One manager's directory, and a daemon on it."""

    def __init__(self, directory: Path, swarm: Swarm | None = None) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.sealer = Sealer(directory / "swarm.key")
        self.lock = Autolock(self.sealer)
        self.lock.settle(swarm)
        self.seen: list[list[str]] = []

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())

    async def save(self, swarm: Swarm, *, autolock: bool, rotate: bool = False) -> Swarm:
        """The record as it is written."""
        was, swarm.spec.encryption_config.auto_lock_managers = swarm.autolock, autolock
        written = []

        async def write(record: Swarm) -> None:
            self.seen.append(self.files)
            written.append(record)

        await self.lock.save(swarm, write, was=was, rotate=rotate)
        return written[0]


@pytest.fixture
def swarm() -> Swarm:
    return new_swarm(SwarmSpec(), [], 0, 0, "now")


async def test_both_files_are_there_while_the_record_is_written(tmp_path: Path, swarm: Swarm) -> None:
    host = Host(tmp_path / "one")
    sealed = host.sealer.seal(b"value", "c")
    swarm = await host.save(swarm, autolock=True)
    assert (host.files, bool(swarm.unlock_key)) == (["swarm.lock"], True)
    again = Host(tmp_path / "one", swarm)
    assert again.lock.locked
    with pytest.raises(Unauthorized):
        await again.lock.unlock("SWMKEY-1-AAAA")
    await again.lock.unlock(await host.lock.told())
    assert again.sealer.unseal(sealed, "c") == b"value"
    swarm = await again.save(swarm, autolock=False)
    assert (again.files, swarm.unlock_key) == (["swarm.key"], b"")
    assert host.seen + again.seen == [["swarm.key", "swarm.lock"]] * 2


async def test_a_record_that_is_not_written_leaves_the_swarm_as_open_as_it_was(tmp_path: Path, swarm: Swarm) -> None:
    host = Host(tmp_path / "one")
    sealed = host.sealer.seal(b"value", "c")

    async def full(record: Swarm) -> None:
        raise DiskFault("no space left on device")

    swarm.spec.encryption_config.auto_lock_managers = True
    with pytest.raises(DiskFault):
        await host.lock.save(swarm, full, was=False, rotate=False)
    swarm.spec.encryption_config.auto_lock_managers = False
    again = Host(tmp_path / "one", swarm)
    assert (again.lock.locked, again.files) == (False, ["swarm.key"])
    assert again.sealer.unseal(sealed, "c") == b"value"


async def test_another_manager_locks_with_the_same_key(tmp_path: Path, swarm: Swarm) -> None:
    first, second = Host(tmp_path / "one"), Host(tmp_path / "two")
    second.sealer.adopt(*first.lock.shared_keys(swarm))
    swarm = await first.save(swarm, autolock=True)
    await second.lock.follow(swarm)
    assert second.files == ["swarm.lock"] and await second.lock.told() == await first.lock.told()
    before = await first.lock.told()
    swarm = await first.save(swarm, autolock=True, rotate=True)
    await second.lock.follow(swarm)
    assert await second.lock.told() == await first.lock.told() != before
    assert first.lock.shared_keys(swarm) == second.lock.shared_keys(swarm)
    await first.lock.forget()
    assert first.files == []


def test_what_is_written_is_read_again() -> None:
    key = new_key()
    assert write_key(key).startswith("SWMKEY-1-") and read_key(f" {write_key(key)}\n") == key


@pytest.mark.parametrize("text", ["", "SWMKEY-1-", "SWMKEY-1-!!", "abc"])
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid key string"):
        read_key(text)
