"""Cost of planning a swarm: the planner, the scheduler and the index of tasks on nodes that are only records.

    .venv/bin/python -m bench.planner [--nodes 10,100,1000] [--tasks-per-node 20] [--tasks-per-service 100]

For each size of swarm, in processor time of this process (others on the machine do not count): the start (all tasks
noted in the index), placing all tasks on empty nodes, one look at everything when all is as declared, the look after a
node was lost (with the new places of its tasks), and what one changed service costs: its plan, and the places of its
tasks. Nothing is stored: what a store costs is in `bench.etcd`.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from husk.swarm.manager.planner import Create, Stop, planning
from husk.swarm.manager.scheduler.scheduler import schedule
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import (
    SECOND,
    Amount,
    Mode,
    Placement,
    Replicated,
    Service,
    ServiceSpec,
    Task,
    TaskResources,
    TaskSpec,
    TaskStatus,
)
from husk.swarm.state.task_index import TaskIndex
from tests.support.generators import at_once

NOW = 1_800_000_000 * SECOND


class Swarm:
    """Nodes in ten zones; each service reserves memory, is kept off a few nodes and spread over the zones."""

    def __init__(self, nodes: int, tasks: int, per_service: int) -> None:
        self.nodes = {f"n{n}": _node(n) for n in range(nodes)}
        self.services = [_service(n, per_service) for n in range(max(1, tasks // per_service))]
        self.tasks: list[Task] = []
        self.index = TaskIndex(lambda service_id: ())

    def look(self, services: list[Service]) -> tuple[int, int]:
        """Plan and place these; (actions, tasks placed)."""
        actions = placed = 0
        for service in services:
            decided = at_once(planning(service, self.index.of_service(service.id), NOW, self.nodes))
            for action in decided.actions:
                actions += 1
                if isinstance(action, Create):
                    self.note(_task(service, action.slot, len(self.tasks)))
                elif isinstance(action, Stop):
                    self._become(self._find(service, action.task_id), desired_state="shutdown")
            waiting = [task for task in self.index.of_service(service.id) if task.status.state == "pending"]
            for task, node_id in schedule(service, waiting, self.nodes, self.index.rooms, NOW).placed:
                running = TaskStatus(timestamp="", state="running", since_ns=NOW, started_ns=NOW)
                self._become(task, node_id=node_id, status=running)
                placed += 1
        return actions, placed

    def note(self, task: Task) -> None:
        self.tasks.append(task)
        self.index.note(task)

    def _become(self, task: Task, **changes: object) -> None:
        self.index.note(msgspec.structs.replace(task, **changes))

    def fill(self) -> None:
        """Until each service has all its tasks."""
        while self.look(self.services) != (0, 0):
            pass

    def start_again(self) -> None:
        self.index = TaskIndex(lambda service_id: ())
        for task in self.tasks:
            self.index.note(task)

    def lose(self, node_id: str) -> None:
        self.nodes[node_id] = msgspec.structs.replace(self.nodes[node_id], state="down", lost_ns=NOW)

    def change(self) -> Service:
        """A service wants ten more."""
        service = self.services[0]
        assert service.spec.mode.replicated is not None
        service.spec.mode = Mode(replicated=Replicated(replicas=service.spec.mode.replicated.replicas + 10))
        return service

    def _find(self, service: Service, task_id: str) -> Task:
        return next(task for task in self.index.of_service(service.id) if task.id == task_id)


def _node(number: int) -> NodeFacts:
    labels = {"zone": f"z{number % 10}", "disk": "ssd" if number % 20 else "none"}
    return NodeFacts(id=f"n{number}", hostname=f"host{number}", labels=labels, nano_cpus=64 * 10**9, memory=1 << 38)


def _service(number: int, replicas: int) -> Service:
    template = TaskSpec(
        placement=Placement(
            constraints=["node.labels.disk==ssd"],
            preferences=[{"Spread": {"SpreadDescriptor": "node.labels.zone"}}],
        ),
        resources=TaskResources(reservations=Amount(memory_bytes=1 << 28)),
    )
    spec = ServiceSpec(name=f"s{number}", mode=Mode(replicated=Replicated(replicas=replicas)), task_template=template)
    return Service(id=f"s{number}", version=1, created_at="", updated_at="", spec=spec)


def _task(service: Service, slot: int, number: int) -> Task:
    return Task(
        id=f"t{number}",
        version=1,
        created_at="",
        created_ns=NOW + number,
        updated_at="",
        service_id=service.id,
        service_name=service.spec.name,
        slot=slot,
        node_id="",
        spec=service.spec.task_template,
        spec_version=service.spec_version,
        status=TaskStatus(timestamp="", state="pending", since_ns=NOW),
    )


@contextmanager
def timed(row: list[str]) -> Iterator[None]:
    begun = time.process_time()
    yield
    row.append(f"{(time.process_time() - begun) * 1000:,.1f}")


def measure(nodes: int, tasks: int, per_service: int, say: Callable[[str], object]) -> None:
    swarm = Swarm(nodes, tasks, per_service)
    row = [f"{nodes:,}", f"{tasks:,}"]
    with timed(row):
        swarm.fill()
    assert len(swarm.tasks) == len(swarm.services) * per_service
    with timed(row):
        swarm.start_again()
    with timed(row):
        assert swarm.look(swarm.services) == (0, 0)
    changed = swarm.change()
    with timed(row):
        assert swarm.look([changed]) == (10, 10)
    swarm.lose("n1")
    with timed(row):
        swarm.look(swarm.services)
    say("| " + " | ".join(row) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="10,30,100,300,1000")
    parser.add_argument("--tasks-per-node", type=int, default=20)
    parser.add_argument("--tasks-per-service", type=int, default=100)
    options = parser.parse_args()
    print("processor time in milliseconds")
    print("| nodes | tasks | place all | start | look | one service +10 | look after a loss |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for nodes in map(int, options.nodes.split(",")):
        measure(nodes, nodes * options.tasks_per_node, options.tasks_per_service, print)


if __name__ == "__main__":
    main()
