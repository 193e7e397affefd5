"""Tasks by service and by node: whatever happens to them, the same is found as by looking at all."""

from collections import Counter, defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from husk.swarm.model.placement import TaskUsage, takes_room
from husk.swarm.model.services import Amount, Task, TaskResources, TaskSpec
from husk.swarm.state.task_index import TaskIndex
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import START, make_task

PORTS = {"s": (("tcp", 80),)}


def make_index() -> TaskIndex:
    return TaskIndex(lambda service_id: PORTS.get(service_id, ()))


changes = st.tuples(
    st.sampled_from(["t1", "t2", "t3", "t4"]),
    st.sampled_from(["s", "other"]),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["pending", "assigned", "running", "failed", "gone"]),
    st.sampled_from(["running", "shutdown"]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(changes, max_size=30))
def test_the_same_is_found_as_by_looking_at_all(happened: list[tuple[str, str, str, str, str]]):
    index, tasks = make_index(), dict[str, Task]()
    for id, service_id, node_id, state, desired in happened:
        if state == "gone":
            if id in tasks:
                index.drop(tasks.pop(id))
            continue
        task = tasks.get(id) or make_task(1, id=id, service_id=service_id)
        task = but(task, node_id=node_id, status__state=state, desired_state=desired)
        tasks[id] = task = but(task, spec=TaskSpec(resources=TaskResources(reservations=Amount(memory_bytes=3))))
        index.note(task)
    by_service, by_node = defaultdict(set), defaultdict(set)
    rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for task in tasks.values():
        by_service[task.service_id].add(task.id)
        if task.node_id:
            by_node[task.node_id].add(task.id)
        if takes_room(task):
            use = TaskUsage(task, PORTS.get(task.service_id, ()))
            rooms[task.node_id] += Counter(tasks=int(use.counts), memory=use.memory, ports=len(use.ports))
    assert {id: {t.id for t in index.of_service(id)} for id in index.services} == by_service
    assert {id: {t.id for t in index.on_node(id)} for id in index.nodes} == by_node
    for node_id in ("a", "b"):
        room = index.rooms[node_id]
        found = Counter(tasks=room.tasks, memory=room.memory, ports=sum(room.ports.values()))
        assert +found == +rooms[node_id]
        assert room.tasks == sum(room.services.values())


def test_a_failure_counts_once():
    index = make_index()
    task = make_task(1, "failed", node_id="a")
    index.note(task)
    index.note(task)
    assert len(index.rooms["a"].failures[("s", 1)]) == 1
    assert index.rooms["a"].fails("s", 1, START) == 0


def test_who_asks_hears_of_each_change():
    index, heard = make_index(), list[str]()
    index.changed.subscribe(heard.append)
    task = make_task(1, id="t")
    index.note(task)
    index.drop(task)
    index.drop(task)
    assert heard == ["t", "t"]


def test_a_node_that_is_gone_is_forgotten_with_its_last_task():
    index = make_index()
    task = make_task(1, "failed", node_id="a")
    index.note(task)
    index.forget_node("a")
    assert index.rooms["a"].failures
    index.drop(task)
    index.forget_node("a")
    assert not index.rooms["a"].failures
