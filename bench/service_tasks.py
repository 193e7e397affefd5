"""Cost of one task for a node, beside all others that its networks lead to. Root needed.

    .venv/bin/python -m bench.service_tasks [--tasks 200,2000,20000] [--per-service 100] [--nodes 100]

A node of a swarm in a network namespace of its own, with records in memory: services with virtual addresses on an
overlay network, the first with a published port instead, and their tasks on other nodes. For each size, in
milliseconds: all of it told to the kernel for the first time, as after a restart; one task more, one less (of the first
service), and a look that finds nothing. Each is the processor time of the whole process, in brackets that of the
daemon's loop alone, which serves nobody else meanwhile, and then what went to the kernel: bytes of nftables commands,
and messages about who is where.
"""

import argparse
import asyncio
import ctypes
import logging
import os
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, ip_interface
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from husk.config import Config
from husk.engine.model.container import Container, Draft
from husk.engine.model.container_config import ContainerConfig, HostConfig
from husk.engine.model.events import Events
from husk.engine.model.network import Network
from husk.engine.networks.service import Networks
from husk.engine.networks.sharing import Place
from husk.errors import NotFound
from husk.kernel import rtaddresses, rtnetlink
from husk.kernel.netlink import NetlinkSocket
from husk.kernel.nftables import Nftables
from husk.network.ipam import mac_address
from husk.storage.state.store import StateStore
from husk.swarm.model.node import Node, NodeStatus
from husk.swarm.model.services import (
    EndpointSpec,
    Mode,
    NetworkAttachment,
    PortConfig,
    Replicated,
    Service,
    ServiceSpec,
    Task,
    TaskSpec,
    TaskStatus,
    VirtualIP,
)
from husk.swarm.network.allocator import OverlayAllocator
from husk.swarm.network.endpoints import Endpoints
from husk.swarm.network.overlay_feed import OverlayFeed
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore

_CLONE_NEWNET = 0x40000000
# On the first network; those on the other have the same, further on.
_FIRST_NODE, _FIRST_SERVICE, _FIRST_TASK = (IPv4Address(one) for one in ("10.16.0.0", "10.32.0.0", "10.48.0.0"))
_FURTHER = 1 << 23
LAN, INGRESS = "a" * 64, "b" * 64
NETWORKS = {
    LAN: Network(id=LAN, name="lan", driver="overlay", created="", vni=4097, subnet="10.0.0.0/9", gateway="10.0.0.1"),
    INGRESS: Network(
        id=INGRESS,
        name="ingress",
        driver="overlay",
        created="",
        vni=4098,
        subnet="10.128.0.0/10",
        gateway="10.128.0.1",
        ingress=True,
    ),
}


class Kernel:
    """Counts what goes there."""

    def __init__(self) -> None:
        self.rules = self.messages = 0
        run, attempt = Nftables.run, NetlinkSocket.attempt

        def counted_run(nftables: Nftables, commands: str) -> str:
            self.rules += len(commands)
            return run(nftables, commands)

        def counted_attempt(netlink: NetlinkSocket, messages: Any) -> Any:
            self.messages += len(messages)
            return attempt(netlink, messages)

        cast(Any, Nftables).run, cast(Any, NetlinkSocket).attempt = counted_run, counted_attempt


class NodeHere:
    """One node and what it knows."""

    def __init__(self, state: StateStore, networks: Networks, nodes: int, per_service: int) -> None:
        self.records = SwarmRecords(SqliteStore(state))
        here: Any = SimpleNamespace(
            node_id="n0", active=True, several=True, data_address="192.0.2.1", data_path_port=4789
        )
        self.shared = OverlayAllocator(self.records, here, lambda: None)
        self.endpoints = Endpoints(
            store=self.records, networks=networks, node_id=lambda: "n0", find_container=lambda id: _nobody(id)
        )
        self.endpoints.shared = self.shared
        self.endpoints.feed = OverlayFeed(
            store=self.records, cluster=here, networks=networks, shared=self.shared, unsaved=lambda: False
        )
        for id, network in NETWORKS.items():
            self.shared._keep_network(id, network, 1)
        networks.presence.learn(self.shared.networks)
        container = Container(
            id="c" * 64,
            name="one",
            created="",
            created_ns=0,
            image_id="",
            config=ContainerConfig(),
            host_config=HostConfig(),
            path="",
            args=[],
        )
        networks._roster.by_name["lan"].members["c"] = Draft(container)
        self.networks, self.nodes, self.per_service, self.number = networks, nodes, per_service, 0
        for number in range(nodes):
            address = f"192.0.2.{number + 1}" if number < 250 else f"198.51.{number // 250}.{number % 250 + 1}"
            status = NodeStatus(state="ready", addr=address)
            self.records.nodes[f"n{number}"] = Node(
                id=f"n{number}", version=1, created_at="", updated_at="", status=status
            )
            for id in NETWORKS:
                self._take(id, _FIRST_NODE + number, f"n{number}", "host")

    def _take(self, network: str, number: IPv4Address, node: str, kind: str, task: str = "") -> None:
        address = str(number + _FURTHER * (network == INGRESS))
        place = Place(
            network=network,
            address=address,
            mac=mac_address(IPv4Address(address)),
            node=node,
            kind=cast(Any, kind),
            task=task,
        )
        self.shared._keep_place(place.key, place, 1)

    def begin_task(self) -> None:
        number, self.number = self.number, self.number + 1
        service = f"s{number // self.per_service}"
        if service not in self.records.services:
            self._add_service(service, number // self.per_service)
        node = f"n{1 + number % (self.nodes - 1)}"
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
        self.records.learn(task)
        self._take(_network(number // self.per_service), _FIRST_TASK + number, node, "endpoint", task.id)

    def end_task(self) -> None:
        task = self.records.tasks["t0"]
        ended = TaskStatus(timestamp="", state="shutdown")
        self.records.learn(
            msgspec.structs.replace(task, version=task.version + 1, desired_state="shutdown", status=ended)
        )
        self.shared._drop("address", f"{INGRESS}/{_FIRST_TASK + _FURTHER}", 2)

    def _add_service(self, id: str, number: int) -> None:
        ports = [PortConfig(protocol="tcp", target_port=80, published_port=8080)] if number == 0 else []
        attached = [NetworkAttachment(target=LAN)] if number else []
        spec = ServiceSpec(
            name=id,
            mode=Mode(replicated=Replicated(replicas=self.per_service)),
            task_template=TaskSpec(networks=attached),
            endpoint_spec=EndpointSpec(ports=ports),
        )
        network = _network(number)
        address = _FIRST_SERVICE + number + _FURTHER * (network == INGRESS)
        virtual = [VirtualIP(network_id=network, addr=f"{address}/9")]
        self.records.services[id] = Service(
            id=id, version=1, created_at="", updated_at="", spec=spec, virtual_ips=virtual, ports=ports
        )
        self._take(network, _FIRST_SERVICE + number, "n0", "service")


def _network(service: int) -> str:
    """The first service has a published port, and is on no network but that of those."""
    return LAN if service else INGRESS


def _nobody(reference: str) -> Container:
    raise NotFound(reference)


async def taken(kernel: Kernel, work: Callable[[], Awaitable[object]]) -> str:
    kernel.rules = kernel.messages = 0
    loop, whole = time.thread_time(), time.process_time()
    await work()
    loop, whole = time.thread_time() - loop, time.process_time() - whole
    return f"{whole * 1000:,.0f} ({loop * 1000:,.0f}), {kernel.rules:,} B, {kernel.messages:,}"


async def measure(directory: Path, kernel: Kernel, tasks: int, per_service: int, nodes: int) -> str:
    _new_host()
    config = Config(data_root=directory / "data", exec_root=directory / "run")
    config.data_root.mkdir()
    state = StateStore.open(config.data_root / "state.db")
    networks = await Networks.open(config, state, Events(), [], _nobody)
    try:
        node = NodeHere(state, networks, nodes, per_service)
        await networks.presence.bring(networks._roster.by_name["lan"])
        for _ in range(tasks):
            node.begin_task()
        settle = node.endpoints.settle
        row = [f"{tasks:,}", await taken(kernel, settle)]
        await settle()
        node.begin_task()
        row.append(await taken(kernel, settle))
        node.end_task()
        row.append(await taken(kernel, settle))
        row.append(await taken(kernel, settle))
        assert networks.balancing.balancer.intact()
        return " | ".join(row)
    finally:
        await networks.close(remove=True)
        state.close()


def _new_host() -> None:
    """This thread, and each that it starts, is in a network namespace of its own from now on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise SystemExit(f"a network namespace cannot be made: {os.strerror(ctypes.get_errno())}")
    with NetlinkSocket() as netlink:
        outside = rtnetlink.add_bridge("eth0", "02:00:00:00:00:01")
        netlink.execute(outside, rtnetlink.set_up("lo"), rtnetlink.set_up("eth0"))
        netlink.execute(rtaddresses.add_address(socket.if_nametoindex("eth0"), ip_interface("192.0.2.1/24")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="200,2000,20000")
    parser.add_argument("--per-service", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=100)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    kernel = Kernel()
    print("| tasks | all at first | one more | one less | nothing |\n| --- | --- | --- | --- | --- |")
    for tasks in map(int, options.tasks.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            work = measure(Path(directory), kernel, tasks, options.per_service, options.nodes)
            print(f"| {asyncio.run(work)} |", flush=True)


if __name__ == "__main__":
    main()
