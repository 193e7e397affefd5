"""Living nodes are in the store while somebody hears them, and nodes are marked by that."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from husk.errors import InvalidParameter, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.manager import liveness
from husk.swarm.manager.liveness import AGAIN, ALIVE, HeartbeatJournal, Liveness, NodeMarker
from husk.swarm.model.heartbeats import GRACE, PERIOD, spared_for
from husk.swarm.model.node import Node, NodeState, NodeStatus
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import Delete, Put, Step, StoreUnavailable
from tests.support.but import but
from tests.support.waiting import until_async


class Time:
    """A clock that goes when it is told."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Swarm:
    def __init__(self, state: StateStore) -> None:
        self.store, self.clock = SqliteStore(state), Time()
        self.period = PERIOD
        self.nodes: dict[str, Node] = {}
        self.marked = 0
        self.leading = True
        self.marking = NodeMarker(
            self.store,
            self.nodes.values,
            self,
            lambda: self.leading,
            self._noticed,
            self.clock,
            lambda: self.period,
        )
        self.hearing = HeartbeatJournal(self.store, "m", self.clock, lambda: self.period, self.marking.heard_by)

    def _noticed(self) -> None:
        self.marked += 1

    def add(self, id: str, state: NodeState) -> None:
        self.nodes[id] = Node(id=id, version=1, created_at="", updated_at="", status=NodeStatus(state=state))

    async def mark(self, id: str, state: NodeState, message: str = "") -> None:
        self.nodes[id] = but(self.nodes[id], status=NodeStatus(state=state, message=message))

    async def alive(self) -> set[str]:
        return {record.key for record in (await self.store.listing(ALIVE)).records}

    async def until_alive(self, *ids: str) -> None:
        async with asyncio.timeout(10):
            while await self.alive() != set(ids):
                await asyncio.sleep(0.001)

    async def until_states(self, **states: str) -> None:
        async with asyncio.timeout(10):
            while {id: node.status.state for id, node in self.nodes.items()} != states:
                await asyncio.sleep(0.001)


@pytest.fixture
async def swarm(state: StateStore, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Swarm]:
    monkeypatch.setattr(liveness, "LOOK", 0.01)
    made = Swarm(state)
    yield made
    await made.marking.close()
    await made.hearing.close()
    await made.store.close()


async def test_a_manager_writes_down_itself_and_whom_it_hears(swarm: Swarm) -> None:
    swarm.hearing.start()
    await swarm.until_alive("m")
    assert swarm.hearing.beat("w") == PERIOD
    await swarm.until_alive("m", "w")
    swarm.clock.now += GRACE
    swarm.hearing.beat("x")
    await swarm.until_alive("m", "x")
    swarm.hearing.forget("x")
    await swarm.until_alive("m")
    await swarm.hearing.close()
    assert await swarm.alive() == {"m"}, "a daemon that starts again at once was never away"
    await swarm.hearing.close(for_good=True)
    assert await swarm.alive() == set()


async def test_hundreds_that_come_at_once_are_written_together(swarm: Swarm, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, sizes = swarm.store.commit, list[int]()

    async def counted(*steps: Step, **options: Any) -> int:
        sizes.append(len(steps))
        if len(sizes) == 2:
            raise StoreUnavailable("no member answers")
        return await commit(*steps, **options)

    monkeypatch.setattr(swarm.store, "commit", counted)
    monkeypatch.setattr(liveness, "PAUSE", 0.001)
    names = [f"w{number}" for number in range(450)]
    for name in names:
        swarm.hearing.beat(name)
    swarm.hearing.start()
    async with asyncio.timeout(10):
        while await swarm.alive() != {"m", *names}:
            await asyncio.sleep(0.001)
    assert max(sizes) <= liveness.AT_ONCE and len(sizes) <= 12, (
        "what could not be written is written again, with others"
    )


async def test_who_is_heard_elsewhere_now_stays(swarm: Swarm) -> None:
    swarm.hearing.start()
    swarm.hearing.beat("w")
    await swarm.until_alive("m", "w")
    async with await swarm.store.lease(10) as lease:
        await swarm.store.commit(Put(ALIVE, "w", b"{}", lease=lease.id))
        swarm.hearing.forget("w")
        swarm.hearing.beat("x")
        await swarm.until_alive("m", "w", "x")


async def test_who_is_silent_goes_when_the_store_answers_again(swarm: Swarm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "PAUSE", 0.001)
    swarm.hearing.start()
    swarm.hearing.beat("w")
    await swarm.until_alive("m", "w")
    commit, failures = swarm.store.commit, iter([Unavailable("no answer"), KeyError("a fault of ours")])

    async def failing(*steps: Step) -> int:
        if isinstance(steps[0], Delete) and (failure := next(failures, None)):
            raise failure
        return await commit(*steps)

    monkeypatch.setattr(swarm.store, "commit", failing)
    swarm.hearing.forget("w")
    await swarm.until_alive("m")


async def test_who_goes_before_it_is_written_anew_leaves_no_record(swarm: Swarm) -> None:
    swarm.hearing.start()
    swarm.hearing.arrive("w")
    await swarm.until_alive("m", "w")
    swarm.hearing.arrive("w")
    swarm.hearing.forget("w")
    await swarm.until_alive("m")


async def test_what_was_written_without_an_answer_goes_with_its_node(
    swarm: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PAUSE", 0.001)
    swarm.hearing.start()
    await swarm.until_alive("m")
    commit, written = swarm.store.commit, []

    async def unheard(*steps: Step) -> int:
        revision = await commit(*steps)
        if isinstance(steps[0], Put):
            written.append(steps[0])
            swarm.hearing.forget("w")
            raise Unavailable("no answer")
        return revision

    monkeypatch.setattr(swarm.store, "commit", unheard)
    swarm.hearing.arrive("w")
    await until_async(lambda: written, "it was written")
    await swarm.until_alive("m")


async def test_who_arrives_is_written_anew(swarm: Swarm) -> None:
    swarm.hearing.start()
    swarm.hearing.arrive("w")
    await swarm.until_alive("m", "w")
    async with await swarm.store.lease(10) as lease:
        await swarm.store.commit(Put(ALIVE, "w", b"{}", lease=lease.id))
        swarm.clock.now += AGAIN
        swarm.hearing.arrive("w")
        async with asyncio.timeout(10):
            while (record := await swarm.store.get(ALIVE, "w")) is None or record.lease == lease.id:
                await asyncio.sleep(0.001)
    assert await swarm.alive() == {"m", "w"}


async def test_who_comes_and_goes_all_the_time_is_written_once_in_a_while(
    swarm: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, commit = swarm.hearing._look, swarm.store.commit
    looks = 0
    written: list[str] = []

    async def counted() -> None:
        nonlocal looks
        looks += 1
        await look()

    async def noted(*steps: Step) -> int:
        written.extend(step.key for step in steps if isinstance(step, Put))
        return await commit(*steps)

    async def come_again() -> None:
        swarm.hearing.arrive("w")
        seen = looks
        await until_async(lambda: looks > seen + 1, "it was looked")

    monkeypatch.setattr(swarm.hearing, "_look", counted)
    monkeypatch.setattr(swarm.store, "commit", noted)
    swarm.hearing.start()
    swarm.hearing.arrive("w")
    await swarm.until_alive("m", "w")
    for _ in range(5):
        await come_again()
    assert written.count("w") == 1
    swarm.clock.now += AGAIN
    await until_async(lambda: written.count("w") == 2, "the last time it came is written, too")


async def test_a_manager_that_lost_its_lease_writes_all_anew(swarm: Swarm) -> None:
    swarm.hearing.start()
    swarm.hearing.beat("w")
    await swarm.until_alive("m", "w")
    lease = swarm.hearing._lease
    assert lease is not None
    await lease.close()
    await swarm.until_alive("m", "w")
    assert swarm.hearing._lease is not lease


async def test_nodes_are_marked_by_who_lives(swarm: Swarm) -> None:
    swarm.add("m", "ready")
    swarm.add("w", "unknown")
    swarm.add("gone", "ready")
    swarm.hearing.start()
    swarm.hearing.beat("w")
    swarm.marking.start()
    await swarm.until_states(m="ready", w="ready", gone="ready")
    assert swarm.marked == 1
    swarm.clock.now += GRACE
    swarm.hearing.beat("w")
    await swarm.until_states(m="ready", w="ready", gone="down")
    swarm.hearing.forget("w")
    await swarm.until_states(m="ready", w="down", gone="down")
    assert swarm.nodes["w"].status.message == "heartbeat failure"
    swarm.hearing.beat("gone")
    await swarm.until_states(m="ready", w="down", gone="ready")


async def test_a_node_that_cannot_be_marked_keeps_no_other_from_it(
    swarm: Swarm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its record may have no room for more."""
    mark = swarm.mark

    async def refused(id: str, state: NodeState, message: str = "") -> None:
        if id == "full":
            raise InvalidParameter("etcdserver: request is too large")
        await mark(id, state, message)

    monkeypatch.setattr(swarm, "mark", refused)
    for id in ("full", "w"):
        swarm.add(id, "ready")
    swarm.marking.start()
    await until_async(lambda: swarm.marking._since is not None, "it watches")
    swarm.clock.now += GRACE
    await swarm.until_states(full="ready", w="down")
    swarm.add("w2", "ready")
    await swarm.until_states(full="ready", w="down", w2="down")
    assert caplog.text.count("node full is down, which cannot be written: etcdserver: request is too large") == 1


async def test_only_the_leader_marks(swarm: Swarm) -> None:
    swarm.add("m", "unknown")
    swarm.leading = False
    live = Liveness(swarm.store, swarm.marking)
    live.start("m")
    live.start("m")
    await swarm.until_alive("m")
    assert swarm.nodes["m"].status.state == "unknown"
    swarm.leading = True
    await swarm.until_states(m="ready")
    await live.close(for_good=True)
    assert await swarm.alive() == set()


async def test_a_new_leader_finds_who_was_lost_while_nobody_led(swarm: Swarm) -> None:
    swarm.add("m", "ready")
    swarm.add("w", "ready")
    swarm.leading = False
    swarm.hearing.start()
    swarm.marking.start()
    await swarm.until_alive("m")
    await until_async(lambda: swarm.marking._since is not None, "it watches")
    swarm.clock.now += GRACE
    assert swarm.nodes["w"].status.state == "ready"
    swarm.leading = True
    await swarm.until_states(m="ready", w="down")


async def test_another_period_brings_another_lease_and_nobody_was_away(swarm: Swarm) -> None:
    swarm.hearing.start()
    assert swarm.hearing.beat("w") == PERIOD
    await swarm.until_alive("m", "w")
    former = swarm.hearing._lease
    gone: list[tuple[str, str]] = []

    async def follow() -> None:
        async for news in swarm.store.watch(ALIVE):
            gone.extend(news.gone)

    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow())
        swarm.period = PERIOD // 5
        await until_async(lambda: swarm.hearing._lease is not former and not swarm.hearing._former, "a new lease")
        assert former is not None and former.lost and await swarm.alive() == {"m", "w"}
        following.cancel()
    assert not gone and swarm.hearing._lease_seconds == 3
    assert swarm.hearing.beat("w") == PERIOD // 5
    swarm.clock.now += GRACE // 5
    await swarm.until_alive("m")


async def test_a_node_is_down_by_the_period_that_the_swarm_has(swarm: Swarm) -> None:
    swarm.period = 2 * PERIOD
    swarm.add("w", "ready")
    swarm.marking.start()
    await until_async(lambda: swarm.marking._since is not None, "it watches")
    swarm.clock.now += GRACE
    await swarm.marking._mark(GRACE)
    assert swarm.nodes["w"].status.state == "ready"
    swarm.clock.now += GRACE
    await swarm.until_states(w="down")


async def test_who_returns_from_another_manager_is_written_down_anew(swarm: Swarm) -> None:
    """The other one removes what it wrote when it hears no more of the node: only that."""
    swarm.hearing.start()
    swarm.hearing.arrive("w")
    await swarm.until_alive("m", "w")
    other = HeartbeatJournal(swarm.store, "n", swarm.clock)
    other.start()
    other.arrive("w")
    await swarm.until_alive("m", "n", "w")
    await _heard_by(swarm, "n")
    swarm.clock.now += AGAIN
    swarm.hearing.arrive("w")
    await _heard_by(swarm, "m")
    other.forget("w")
    await other.close(for_good=True)
    await swarm.until_alive("m", "w")


async def _heard_by(swarm: Swarm, manager: str) -> None:
    async with asyncio.timeout(10):
        while (found := await swarm.store.get(ALIVE, "w")) is None or manager.encode() not in found.body:
            await asyncio.sleep(0.001)


async def test_a_node_has_time_to_find_another_manager_when_its_own_has_gone(swarm: Swarm) -> None:
    for id in ("m", "n", "w"):
        swarm.add(id, "ready")
    swarm.hearing.start()
    other = HeartbeatJournal(swarm.store, "n", swarm.clock)
    other.start()
    other.beat("w")
    await swarm.until_alive("m", "n", "w")
    swarm.marking.start()
    await until_async(lambda: set(swarm.marking._alive) == {"m", "n", "w"}, "it knows all")
    swarm.clock.now += GRACE
    await other.close(for_good=True)
    await swarm.until_states(m="ready", n="down", w="ready")
    swarm.clock.now += spared_for(PERIOD) - 1
    await until_async(lambda: not swarm.marking._changed.is_set(), "another look")
    assert swarm.nodes["w"].status.state == "ready"
    swarm.clock.now += 1
    await swarm.until_states(m="ready", n="down", w="down")


async def test_who_is_heard_elsewhere_now_is_not_taken_along_to_another_lease(swarm: Swarm) -> None:
    swarm.hearing.start()
    swarm.hearing.beat("w")
    swarm.hearing.beat("x")
    await swarm.until_alive("m", "w", "x")
    async with await swarm.store.lease(10) as other:
        await swarm.store.commit(Put(ALIVE, "w", b"{}", lease=other.id))
        swarm.period = 2 * PERIOD
        former = swarm.hearing._lease
        await until_async(lambda: swarm.hearing._lease is not former and not swarm.hearing._former, "another lease")
        record = await swarm.store.get(ALIVE, "w")
        assert record is not None and record.lease == other.id, "the other manager's"
        swarm.clock.now += 2 * GRACE
        await swarm.until_alive("m", "w")
        swarm.hearing.beat("w")
        async with asyncio.timeout(10):
            while record is None or record.lease == other.id:
                await asyncio.sleep(0.001)
                record = await swarm.store.get(ALIVE, "w")
    assert await swarm.alive() == {"m", "w"}, "it is ours again"


async def test_what_another_manager_wrote_late_is_written_again_when_the_node_is_heard(
    swarm: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, written = swarm.store.commit, list[str]()

    async def noted(*steps: Step) -> int:
        written.extend(step.key for step in steps if isinstance(step, Put))
        return await commit(*steps)

    swarm.hearing.start()
    swarm.marking.start()
    swarm.hearing.arrive("w")
    await until_async(lambda: swarm.marking.heard_by("w") == "m", "it is told")
    async with await swarm.store.lease(10) as lease:
        late = b'{"manager":"n"}'
        await swarm.store.commit(Put(ALIVE, "w", late, lease=lease.id), Put(ALIVE, "m", late, lease=lease.id))
        await until_async(lambda: swarm.marking.heard_by("w") == "n", "the other one is told")
        monkeypatch.setattr(swarm.store, "commit", noted)
        swarm.hearing.beat("w")
        await _looked(swarm)
        assert written == [], "what we wrote a moment ago may not be told yet"
        swarm.clock.now += AGAIN
        await until_async(lambda: swarm.marking.heard_by("m") == "m", "it hears itself all the time")
        assert written == ["m"], "a node that is not heard may be the other one's"
        swarm.hearing.beat("w")
        await until_async(lambda: swarm.marking.heard_by("w") == "m", "it is ours again")
    assert await swarm.alive() == {"m", "w"}, "the other one's are gone"
    for _ in range(3):
        swarm.clock.now += AGAIN
        swarm.hearing.beat("w")
        await _looked(swarm)
    assert written == ["m", "w"], "nothing is written at rest"
    await commit(Delete(ALIVE, "w"))
    await until_async(lambda: swarm.marking.heard_by("w") == "", "it is gone")
    swarm.hearing.beat("w")
    await until_async(lambda: swarm.marking.heard_by("w") == "m", "it is there again")


async def test_nothing_is_written_while_nobody_tells_who_is_heard(swarm: Swarm) -> None:
    swarm.hearing.start()
    swarm.hearing.arrive("w")
    await swarm.until_alive("m", "w")
    assert swarm.marking.heard_by("w") is None
    await swarm.store.commit(Delete(ALIVE, "w"))
    swarm.clock.now += AGAIN
    swarm.hearing.beat("w")
    await _looked(swarm)
    assert await swarm.alive() == {"m"}


async def _looked(swarm: Swarm) -> None:
    """Until all that is to be written is."""
    looked = asyncio.Event()
    look = swarm.hearing._look

    async def told() -> None:
        await look()
        looked.set()

    swarm.hearing._look = told  # type: ignore[method-assign]
    swarm.hearing._changed.set()
    for _ in range(2):
        looked.clear()
        await looked.wait()
    swarm.hearing._look = look  # type: ignore[method-assign]
