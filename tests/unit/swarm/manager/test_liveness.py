"""Living nodes are in the store while somebody hears them, and nodes are marked by that."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from husk.errors import InvalidParameter, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.manager.liveness import AGAIN, ALIVE, AT_ONCE, HeartbeatJournal, Liveness, NodeMarker
from husk.swarm.model.heartbeats import GRACE, PERIOD, spared_for
from husk.swarm.model.node import Node, NodeState, NodeStatus
from husk.swarm.state.cluster_store import Lease
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import Delete, Put, Step, StoreUnavailable
from tests.support.but import but
from tests.support.tapped_store import TappedStore
from tests.support.waiting import until_async


class Time:
    """A clock that goes when it is told."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Swarm:
    def __init__(self, state: StateStore) -> None:
        self.store, self.clock = TappedStore(SqliteStore(state)), Time()
        self.period = PERIOD
        self.nodes: dict[str, Node] = {}
        self.marked = 0
        self.leading = True
        self.marking = NodeMarker(
            self.store,
            self._listed,
            self,
            lambda: self.leading,
            self._noticed,
            self.clock,
            lambda: self.period,
            look=0.01,
        )
        self.looks = self.marker_looks = 0
        self.full: set[str] = set()
        self.hearing = HeartbeatJournal(
            self.store, "m", self.clock, self._asked, self.marking.heard_by, pause=0.001, look=0.01
        )

    def _asked(self) -> int:
        """Answer what the journal asks once with each look."""
        self.looks += 1
        return self.period

    def _listed(self) -> Iterable[Node]:
        """Answer what the marker asks once with each look."""
        self.marker_looks += 1
        return self.nodes.values()

    def _noticed(self) -> None:
        self.marked += 1

    def add(self, id: str, state: NodeState) -> None:
        self.nodes[id] = Node(id=id, version=1, created_at="", updated_at="", status=NodeStatus(state=state))

    async def mark(self, id: str, state: NodeState, message: str = "") -> None:
        if id in self.full:
            raise InvalidParameter("etcdserver: request is too large")
        self.nodes[id] = but(self.nodes[id], status=NodeStatus(state=state, message=message))

    async def alive(self) -> set[str]:
        return {record.key for record in (await self.store.listing(ALIVE)).records}

    async def until_alive(self, *ids: str) -> None:
        async with asyncio.timeout(10):
            while await self.alive() != set(ids):
                await asyncio.sleep(0.001)

    async def looked(self) -> None:
        """Until the journal has written all that is to be written now: the look after this one ends a third begins."""
        seen = self.looks
        await until_async(lambda: self.looks > seen + 1, "it was looked")

    async def marked_again(self) -> None:
        """Until the marker has looked at all nodes once more."""
        seen = self.marker_looks
        await until_async(lambda: self.marker_looks > seen + 1, "the nodes were looked at")

    async def watched(self) -> None:
        await until_async(lambda: self.marking.heard_by("") is not None, "it watches")

    async def other_lease(self, former: Lease) -> Lease:
        """Return the journal's next lease, when nothing is left under the one before."""
        await until_async(lambda: self.store.leases[-1] is not former and former.lost, "another lease")
        return self.store.leases[-1]

    async def until_states(self, **states: str) -> None:
        async with asyncio.timeout(10):
            while {id: node.status.state for id, node in self.nodes.items()} != states:
                await asyncio.sleep(0.001)


@pytest.fixture
async def swarm(state: StateStore) -> AsyncIterator[Swarm]:
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


async def test_hundreds_that_come_at_once_are_written_together(swarm: Swarm) -> None:
    commit, sizes = swarm.store.on_commit, list[int]()

    async def counted(*steps: Step, **options: Any) -> int:
        sizes.append(len(steps))
        if len(sizes) == 2:
            raise StoreUnavailable("no member answers")
        return await commit(*steps, **options)

    swarm.store.on_commit = counted
    names = [f"w{number}" for number in range(450)]
    for name in names:
        swarm.hearing.beat(name)
    swarm.hearing.start()
    async with asyncio.timeout(10):
        while await swarm.alive() != {"m", *names}:
            await asyncio.sleep(0.001)
    assert max(sizes) <= AT_ONCE and len(sizes) <= 12, "what could not be written is written again, with others"


async def test_who_is_heard_elsewhere_now_stays(swarm: Swarm) -> None:
    swarm.hearing.start()
    swarm.hearing.beat("w")
    await swarm.until_alive("m", "w")
    async with await swarm.store.lease(10) as lease:
        await swarm.store.commit(Put(ALIVE, "w", b"{}", lease=lease.id))
        swarm.hearing.forget("w")
        swarm.hearing.beat("x")
        await swarm.until_alive("m", "w", "x")


async def test_who_is_silent_goes_when_the_store_answers_again(swarm: Swarm) -> None:
    swarm.hearing.start()
    swarm.hearing.beat("w")
    await swarm.until_alive("m", "w")
    commit, failures = swarm.store.on_commit, iter([Unavailable("no answer"), KeyError("a fault of ours")])

    async def failing(*steps: Step) -> int:
        if isinstance(steps[0], Delete) and (failure := next(failures, None)):
            raise failure
        return await commit(*steps)

    swarm.store.on_commit = failing
    swarm.hearing.forget("w")
    await swarm.until_alive("m")


async def test_who_goes_before_it_is_written_anew_leaves_no_record(swarm: Swarm) -> None:
    swarm.hearing.start()
    swarm.hearing.arrive("w")
    await swarm.until_alive("m", "w")
    swarm.hearing.arrive("w")
    swarm.hearing.forget("w")
    await swarm.until_alive("m")


async def test_what_was_written_without_an_answer_goes_with_its_node(swarm: Swarm) -> None:
    swarm.hearing.start()
    await swarm.until_alive("m")
    commit, written = swarm.store.on_commit, []

    async def unheard(*steps: Step) -> int:
        revision = await commit(*steps)
        if isinstance(steps[0], Put):
            written.append(steps[0])
            swarm.hearing.forget("w")
            raise Unavailable("no answer")
        return revision

    swarm.store.on_commit = unheard
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


async def test_who_comes_and_goes_all_the_time_is_written_once_in_a_while(swarm: Swarm) -> None:
    commit, written = swarm.store.on_commit, list[str]()

    async def noted(*steps: Step) -> int:
        written.extend(step.key for step in steps if isinstance(step, Put))
        return await commit(*steps)

    swarm.store.on_commit = noted
    swarm.hearing.start()
    swarm.hearing.arrive("w")
    await swarm.until_alive("m", "w")
    for _ in range(5):
        swarm.hearing.arrive("w")
        await swarm.looked()
    assert written.count("w") == 1
    swarm.clock.now += AGAIN
    await until_async(lambda: written.count("w") == 2, "the last time it came is written, too")


async def test_a_manager_that_lost_its_lease_writes_all_anew(swarm: Swarm) -> None:
    swarm.hearing.start()
    swarm.hearing.beat("w")
    await swarm.until_alive("m", "w")
    lease = swarm.store.leases[-1]
    await lease.close()
    await swarm.until_alive("m", "w")
    assert swarm.store.leases[-1] is not lease


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
    swarm: Swarm, caplog: pytest.LogCaptureFixture
) -> None:
    """Its record may have no room for more."""
    swarm.full = {"full"}
    for id in ("full", "w"):
        swarm.add(id, "ready")
    swarm.marking.start()
    await swarm.watched()
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
    await swarm.watched()
    swarm.clock.now += GRACE
    assert swarm.nodes["w"].status.state == "ready"
    swarm.leading = True
    await swarm.until_states(m="ready", w="down")


async def test_another_period_brings_another_lease_and_nobody_was_away(swarm: Swarm) -> None:
    swarm.hearing.start()
    assert swarm.hearing.beat("w") == PERIOD
    await swarm.until_alive("m", "w")
    former = swarm.store.leases[-1]
    gone: list[tuple[str, str]] = []

    async def follow() -> None:
        async for news in swarm.store.watch(ALIVE):
            gone.extend(news.gone)

    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow())
        swarm.period = PERIOD // 5
        await swarm.other_lease(former)
        assert await swarm.alive() == {"m", "w"}
        following.cancel()
    assert not gone and swarm.store.lease_seconds[-1] == 3
    assert swarm.hearing.beat("w") == PERIOD // 5
    swarm.clock.now += GRACE // 5
    await swarm.until_alive("m")


async def test_a_node_is_down_by_the_period_that_the_swarm_has(swarm: Swarm) -> None:
    swarm.period = 2 * PERIOD
    swarm.add("w", "ready")
    swarm.marking.start()
    await swarm.watched()
    swarm.clock.now += GRACE
    await swarm.marked_again()
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
    await until_async(lambda: all(swarm.marking.heard_by(id) for id in ("m", "n", "w")), "it knows all")
    swarm.clock.now += GRACE
    await other.close(for_good=True)
    await swarm.until_states(m="ready", n="down", w="ready")
    swarm.clock.now += spared_for(PERIOD) - 1
    await swarm.marked_again()
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
        await swarm.other_lease(swarm.store.leases[-2])
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


async def test_what_another_manager_wrote_late_is_written_again_when_the_node_is_heard(swarm: Swarm) -> None:
    commit, written = swarm.store.on_commit, list[str]()

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
        swarm.store.on_commit = noted
        swarm.hearing.beat("w")
        await swarm.looked()
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
        await swarm.looked()
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
    await swarm.looked()
    assert await swarm.alive() == {"m"}
