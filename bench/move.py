"""Time that writers wait while a swarm's records move from SQLite into etcd: one member on the loopback.

    .venv/bin/python -m bench.move [--tasks 1000]

etcd's data is on /dev/shm, so that the disk plays no part. Tasks are of one service with a usual specification.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from husk.storage.state.store import StateStore
from husk.swarm.membership.moving import copy, everything
from husk.swarm.model.services import ContainerSpec, Service, ServiceSpec, Task, TaskSpec, TaskStatus
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.model.swarm import Swarm
from husk.swarm.state.etcd.store import EtcdStore
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from tests.support.etcd import Etcd


async def measure(directory: Path, address: str, count: int) -> None:
    state = StateStore.open(directory / "state.db")
    records = SwarmRecords.load(SqliteStore(state))
    stamps = {"version": 0, "created_at": "2026-01-01T00:00:00Z", "updated_at": ""}
    template = TaskSpec(container_spec=ContainerSpec(image="busybox", args=["sleep", "inf"], env=["A=1", "B=2"]))
    swarm = Swarm(id="s", spec=SwarmSpec(), worker_token="w", manager_token="m", **stamps)  # type: ignore[arg-type]
    web = Service(id="web", spec=ServiceSpec(name="web", task_template=template), **stamps)  # type: ignore[arg-type]
    await records.save(swarm, web)
    tasks = [
        Task(
            id=f"task{slot:020}", service_id="web", service_name="web", slot=slot, node_id="n", spec=template,
            created_ns=0, spec_version=1, status=TaskStatus(timestamp="", state="running", container_id="c" * 64),
            desired_state="running", **stamps,  # type: ignore[arg-type]
        )
        for slot in range(count)
    ]  # fmt: skip
    await records.save(*tasks)
    store = EtcdStore.open(address)
    await store.status()
    begun, used = time.perf_counter(), time.process_time()
    copied = await copy(records.store, store)
    there = await everything(store)
    records.switch(store, there)
    waited, used = time.perf_counter() - begun, time.process_time() - used
    size = sum(len(record.body) for record in there.records)
    print(f"{copied} records, {size / 1024:.0f} KiB: writers wait {waited * 1000:.0f} ms")
    print(f"of the processor: {used * 1000:.0f} ms")
    await store.close()
    state.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory, Etcd(Path(directory) / "etcd") as etcd:
        asyncio.run(measure(Path(directory), etcd.address, arguments.tasks))


if __name__ == "__main__":
    main()
