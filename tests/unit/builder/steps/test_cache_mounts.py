"""Directories of a cache: the steps that get them, and the steps that wait."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from husk.aio.tasks import Tasks
from husk.builder.steps.cache_mounts import CacheMountRecord, CacheMounts, WantedCache
from husk.engine.model.build import CACHE_MOUNT
from husk.errors import Conflict, NotFound, SystemFault
from husk.storage.state.store import Change


class FakeDirectories:
    def __init__(self) -> None:
        self.made: dict[str, tuple[Sequence[str], str]] = {}
        self.failure: Exception | None = None
        self.measured = 0

    def path(self, name: str) -> Path:
        return Path("/caches", name)

    def has(self, name: str) -> bool:
        return name in self.made

    def make(self, name: str, lower: Sequence[str] = (), selector: str = "") -> None:
        if self.failure:
            raise self.failure
        self.made[name] = (lower, selector)

    def size(self, name: str) -> int:
        self.measured += 1
        return 7

    def remove(self, name: str) -> None:
        self.made.pop(name, None)


class FakeState:
    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}

    async def settle(self, *changes: Change, lazy: bool = False) -> None:
        for change in changes:
            assert change.kind == CACHE_MOUNT
            if change.body is None:
                self.records.pop(change.key, None)
            else:
                self.records[change.key] = change.body


@pytest.fixture
def directories() -> FakeDirectories:
    return FakeDirectories()


@pytest.fixture
def state() -> FakeState:
    return FakeState()


@pytest.fixture
def caches(directories: FakeDirectories, state: FakeState) -> CacheMounts:
    return CacheMounts(directories, state, [])


SHARED = WantedCache(id="c")
PRIVATE = WantedCache(id="c", sharing="private")
LOCKED = WantedCache(id="c", sharing="locked")


async def take(caches: CacheMounts, stack: AsyncExitStack, *wanted: WantedCache) -> list[Path]:
    return await stack.enter_async_context(caches.taken(wanted))


async def test_those_who_share_have_one_directory(caches: CacheMounts) -> None:
    async with AsyncExitStack() as stack:
        both = await asyncio.gather(take(caches, stack, SHARED), take(caches, stack, SHARED))
        assert both[0] == both[1]
    async with AsyncExitStack() as stack:
        assert await take(caches, stack, SHARED) == both[0]
        assert await take(caches, stack, WantedCache(id="other")) != both[0]


async def test_private_directories(caches: CacheMounts, directories: FakeDirectories) -> None:
    async with AsyncExitStack() as stack:
        taken = [await take(caches, stack, PRIVATE) for _ in range(3)]
        assert len({path for [path] in taken}) == 3
        [shared] = await take(caches, stack, SHARED)
        assert [shared] not in taken
    async with AsyncExitStack() as stack:
        assert (await take(caches, stack, PRIVATE))[0].name in directories.made
    assert len(directories.made) == 4


async def test_who_locks_waits_for_his_turn(caches: CacheMounts) -> None:
    order: list[int] = []

    async def use(number: int) -> None:
        async with caches.taken([LOCKED]):
            order.append(number)
            await asyncio.sleep(0)

    async with AsyncExitStack() as stack:
        await take(caches, stack, LOCKED)
        tasks = Tasks()
        users = [tasks.spawn(use(number), "use a cache") for number in range(4)]
        await asyncio.sleep(0)
        users[1].cancel()
        await asyncio.sleep(0)
        assert order == []
    await asyncio.wait(users)
    assert order == [0, 2, 3]


async def test_who_shares_does_not_overtake_who_waits(caches: CacheMounts) -> None:
    order: list[str] = []

    async def use(wanted: WantedCache) -> None:
        async with caches.taken([wanted]):
            order.append(wanted.sharing)

    async with AsyncExitStack() as stack:
        await take(caches, stack, SHARED)
        tasks = Tasks()
        users = [tasks.spawn(use(wanted), "use a cache") for wanted in (LOCKED, SHARED)]
        await asyncio.sleep(0)
        assert order == []
        users[0].cancel()
        async with asyncio.timeout(5):
            await users[1]
        assert order == ["shared"]


async def test_one_who_is_cancelled_as_his_turn_comes_gives_it_on(caches: CacheMounts) -> None:
    holding = AsyncExitStack()
    await take(caches, holding, LOCKED)
    async with AsyncExitStack() as stack:
        first, second = (Tasks().spawn(take(caches, stack, LOCKED), "use", awaited=True) for _ in range(2))
        await asyncio.sleep(0)
        await holding.aclose()
        assert not first.done(), "the turn has been given, and not been taken yet"
        first.cancel()
        async with asyncio.timeout(5):
            await second
        assert first.cancelled()


async def test_the_same_cache_twice_in_a_step_is_one(caches: CacheMounts) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(5):
        one, other, same = await take(caches, stack, LOCKED, WantedCache(id="b", sharing="locked"), LOCKED)
        assert one == same != other


async def test_a_first_content(caches: CacheMounts, directories: FakeDirectories) -> None:
    wanted = WantedCache(id="c", source="diff:x", lower=["/x"], selector="/cache")
    async with AsyncExitStack() as stack:
        [path] = await take(caches, stack, wanted)
        assert directories.made[path.name] == (("/x",), "/cache")
        assert await take(caches, stack, SHARED) != [path]


async def test_a_directory_that_cannot_be_made(
    caches: CacheMounts, directories: FakeDirectories, state: FakeState
) -> None:
    directories.failure = SystemFault("no room")
    with pytest.raises(SystemFault):
        async with caches.taken([SHARED]):
            pass
    directories.failure = None
    async with AsyncExitStack() as stack:
        await take(caches, stack, SHARED)
    assert len(directories.made) == len(await caches.items()) == 1
    await caches.close()
    assert state.records.keys() == directories.made.keys()


async def test_removal(caches: CacheMounts, directories: FakeDirectories, state: FakeState) -> None:
    async with AsyncExitStack() as stack:
        [path] = await take(caches, stack, SHARED)
        with pytest.raises(Conflict):
            await caches.remove(path.name)
        assert await caches.prune(lambda item: True) == []
    assert await caches.remove(path.name) == 7
    assert (directories.made, state.records) == ({}, {})
    with pytest.raises(NotFound):
        await caches.remove(path.name)
    async with AsyncExitStack() as stack:
        await take(caches, stack, SHARED)
    [item] = await caches.items()
    assert (item.type, item.size, item.uses, item.in_use) == ("exec.cachemount", 7, 1, False)
    assert await caches.prune(lambda item: True) == [item]
    assert await caches.items() == []


async def test_files_are_looked_at_only_after_a_use(directories: FakeDirectories, caches: CacheMounts) -> None:
    async with AsyncExitStack() as stack:
        [path] = await take(caches, stack, SHARED)
        for measured in (1, 2):  # a step is at work on it
            assert [item.size for item in await caches.items()] == [7] and directories.measured == measured
    for _ in range(3):
        assert [item.size for item in await caches.items()] == [7] and directories.measured == 3
    async with AsyncExitStack() as stack:
        await take(caches, stack, SHARED)
    assert [item.size for item in await caches.items()] == [7] and directories.measured == 4
    assert await caches.remove(path.name) == 7 and directories.measured == 4


async def test_records_whose_directories_are_gone(directories: FakeDirectories, state: FakeState) -> None:
    directories.made["there"] = ((), "")
    state.records = {"there": b"", "gone": b""}
    kept = [CacheMountRecord(name=name, key="c", description="", created=1, last_used=1) for name in ("there", "gone")]
    caches = await CacheMounts.open(directories, state, kept)
    assert list(state.records) == ["there"]
    async with caches.taken([SHARED]) as [path]:
        assert path.name == "there"


async def test_who_builds_without_a_cache_begins_anew(
    caches: CacheMounts, directories: FakeDirectories, state: FakeState
) -> None:
    filled = WantedCache(id="c", source="s", lower=("/s",))
    async with caches.taken([SHARED, filled]) as before:
        pass
    caches.begin_anew({"c": False, "other": True})
    async with caches.taken([SHARED, filled]) as after:
        assert (after[0] == before[0], after[1] == before[1]) == (False, True)
    caches.begin_anew({"c": True})
    async with caches.taken([filled]) as last:
        assert last != [after[1]]
    await caches.close()
    assert set(directories.made) == {path.name for path in last}
    assert set(state.records) == set(directories.made)


async def test_a_directory_that_is_used_is_retired_when_it_is_given_back(
    caches: CacheMounts, directories: FakeDirectories, state: FakeState
) -> None:
    async with AsyncExitStack() as stack:
        (used,) = await take(caches, stack, LOCKED)
        waiting = Tasks().spawn(take(caches, stack, LOCKED), "take a cache mount", awaited=True)
        await asyncio.sleep(0)
        caches.begin_anew({"c": False})
        (new,) = await waiting
        assert new != used and used.name in directories.made
        # A daemon that is killed now finds it retired.
        await asyncio.sleep(0)
        kept = [msgspec.json.decode(body, type=CacheMountRecord) for body in state.records.values()]
        again = await CacheMounts.open(directories, FakeState(), kept)
        await again.close()
        assert set(directories.made) == {new.name}
    await caches.close()
    assert set(state.records) == {new.name}
