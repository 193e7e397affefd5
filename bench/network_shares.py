"""Cost of one address for a manager whose workers share one overlay network: records in memory, without daemons.

    .venv/bin/python -m bench.network_shares [--workers 10,100,1000] [--tasks-per-worker 20]

For each size of swarm, in processor time of this process: telling one worker everything, as when it comes for the first
time; one address that is taken, until all workers' messages about it are made; a task of one worker that ends; and a
look that finds nothing. And the memory that all workers' shares take. What is sent over connections is not counted.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from husk.engine.model.network import Network
from husk.engine.networks.sharing import Place
from husk.storage.state.store import StateStore
from husk.swarm.manager.dispatcher.dispatcher import Dispatcher, _Session
from husk.swarm.model.node import Node, NodeStatus
from husk.swarm.model.services import (
    Mode,
    NetworkAttachment,
    Replicated,
    Service,
    ServiceSpec,
    Task,
    TaskSpec,
    TaskStatus,
)
from husk.swarm.network.allocator import OverlayAllocator
from husk.swarm.network.server import NetworkServer
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore

PER_SERVICE = 100
# Of how many workers the first telling is measured.
SAMPLE = 10


class Swarm:
    """Workers with tasks of services that are all on one network; each task has an address there, and each host."""

    def __init__(self, state: StateStore, workers: int, tasks: int) -> None:
        self.records = SwarmRecords(SqliteStore(state))
        here: Any = SimpleNamespace(node_id="m", active=True, data_path_port=4789)
        self.shared = OverlayAllocator(self.records, here, lambda: None)
        self.number = 0
        self.shared.networks["lan"] = Network(
            id="lan", name="lan", driver="overlay", created="", vni=4097, subnet="10.0.0.0/8"
        )
        self.server = NetworkServer(self.records, here, lambda: self.shared, lambda: None)
        none = cast(Any, None)
        self.dispatcher = Dispatcher(
            store=self.records,
            values=none,
            credentials=none,
            locked=lambda: False,
            changed=none,
            networks=self.server.share,
            generation=self.server.generation,
        )
        for number in range(max(1, workers * tasks // PER_SERVICE)):
            self.records.services[f"s{number}"] = _service(number)
        for worker in range(workers):
            status = NodeStatus(state="ready", addr=f"192.0.{worker // 250}.{worker % 250 + 1}")
            node = Node(id=f"w{worker}", version=1, created_at="", updated_at="", status=status)
            self.records.nodes[node.id] = node
            self.take(node.id, kind="host")
            for _ in range(tasks):
                self.add_task(node.id)
        self.sessions = [_Session(f"w{worker}") for worker in range(workers)]

    def take(self, node: str, task: str = "", kind: str = "endpoint") -> None:
        self.number += 1
        n = self.number
        place = Place(
            network="lan",
            address=f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",
            mac="02:42:0a:00:00:01",
            node=node,
            kind=cast(Any, kind),
            task=task,
        )
        self.shared._keep_place(place.key, place, n)

    def add_task(self, node: str) -> None:
        number = len(self.records.tasks)
        service = f"s{number // PER_SERVICE % len(self.records.services)}"
        task = Task(
            id=f"t{number}",
            version=1,
            created_at="",
            created_ns=number,
            updated_at="",
            service_id=service,
            service_name=service,
            slot=number,
            node_id=node,
            spec=TaskSpec(),
            spec_version=0,
            status=TaskStatus(timestamp="", state="running"),
        )
        self.records.tasks[task.id] = task
        self.records.index.note(task)
        self.take(node, task.id)

    def end_task(self) -> None:
        task, ended = self.records.tasks["t0"], TaskStatus(timestamp="", state="shutdown")
        self.records.learn(msgspec.structs.replace(task, desired_state="shutdown", status=ended))

    def tell(self, sessions: Sequence[_Session]) -> tuple[float, int]:
        """Workers what is new: processor time in milliseconds, and how many records were told."""
        begun, told = time.process_time(), 0
        for session in sessions:
            for news in self.dispatcher._network_news(session):
                told += len(news.records) + len(news.gone)
        return (time.process_time() - begun) * 1000, told


def _service(number: int) -> Service:
    spec = ServiceSpec(
        name=f"s{number}",
        mode=Mode(replicated=Replicated(replicas=PER_SERVICE)),
        task_template=TaskSpec(networks=[NetworkAttachment(target="lan")]),
    )
    return Service(id=f"s{number}", version=1, created_at="", updated_at="", spec=spec)


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / (1 << 20)


async def measure(directory: Path, workers: int, tasks: int) -> str:
    state = StateStore.open(directory / "state.db")
    try:
        swarm = Swarm(state, workers, tasks)
        before = _resident()
        first, records = swarm.tell(swarm.sessions[:SAMPLE])
        for session in swarm.sessions[SAMPLE:]:
            # As if they had been told: to make each one's messages would take long.
            session.seen, session.networks = None, swarm.server.share(session.node_id)
        swarm.tell(swarm.sessions)
        memory = _resident() - before
        swarm.take("w0")
        address, told = swarm.tell(swarm.sessions)
        assert told == workers, told
        swarm.end_task()
        task, _ = swarm.tell(swarm.sessions)
        nothing, none = swarm.tell(swarm.sessions)
        assert none == 0
        row = [f"{workers:,}", f"{workers * tasks:,}", f"{records // SAMPLE:,}", f"{first / SAMPLE:,.1f}"]
        row += [f"{taken:,.1f}" for taken in (address, task, nothing)]
        return " | ".join((*row, f"{memory:,.0f}"))
    finally:
        state.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="10,30,100,300,1000")
    parser.add_argument("--tasks-per-worker", type=int, default=20)
    options = parser.parse_args()
    print("processor time in milliseconds, memory in MiB")
    print("| workers | tasks | records each knows | one at first | an address | a task ends | a look | memory |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for number in map(int, options.workers.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            print(f"| {asyncio.run(measure(Path(directory), number, options.tasks_per_worker))} |", flush=True)


if __name__ == "__main__":
    main()
