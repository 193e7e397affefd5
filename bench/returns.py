"""Time that a manager takes to hear all of its nodes again that come back to it at once.

    .venv/bin/python -m bench.returns [--nodes 10,100,450,1000]

A cluster port in a process of its own, as after a start of a manager, and nodes that all come in the same moment, each
from an address of the loopback of its own, with the patience and the pauses of a worker. Prints how long it took until
the last was heard, how often nodes had to try again, and the processor time of the manager for each. The nodes take the
same machine's processors, and more of them.
"""

import argparse
import asyncio
import itertools
import multiprocessing
import resource
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from husk.aio.tasks import Tasks
from husk.swarm.ca.identity import Identity
from husk.swarm.loops import again_and_again
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import RootReply, RootRequest
from husk.swarm.port.peers import Peer
from tests.support.cluster_port import PortedSwarm

METHOD = "/bench/Nodes"
_connect = asyncio.open_connection


def manage(swarm: PortedSwarm, pipe: Connection) -> None:
    """The manager's process: tells where its port is, and, when it is asked, the processor time that it took."""

    async def heard(peer: Peer, request: RootRequest) -> RootReply:
        return RootReply(certificate=peer.node.encode())

    async def serve() -> None:
        async with swarm.opened() as port:
            port._home = lambda address: True
            port.register_unary(METHOD, RootRequest, heard, access="node")
            before = resource.getrusage(resource.RUSAGE_SELF)
            pipe.send(swarm.endpoint)
            await asyncio.to_thread(pipe.recv)
            after = resource.getrusage(resource.RUSAGE_SELF)
            pipe.send(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    asyncio.run(serve())


async def come_back(swarm: PortedSwarm, identities: Sequence[Identity]) -> tuple[float, int]:
    """Seconds until all are heard, and how many tries that took."""
    places, tries = itertools.count(), itertools.count()

    async def from_another_place(host: str, port: int, **options: Any) -> Any:
        number = next(places)
        place = f"127.{1 + number // 62500 % 250}.{number // 250 % 250}.{1 + number % 250}"
        return await _connect(host, port, local_addr=(place, 0), **options)

    asyncio.open_connection = from_another_place  # type: ignore[assignment]

    async def one(identity: Identity) -> None:
        managers, done = Managers([swarm.endpoint], identity), asyncio.Event()

        async def call() -> None:
            next(tries)
            await managers.unary(METHOD, RootRequest(), RootReply)
            done.set()
            await asyncio.Event().wait()

        tasks = Tasks()
        tasks.spawn(again_and_again(call, "bench"), "a node")
        await done.wait()
        await tasks.cancel_all()

    begun = time.monotonic()
    await asyncio.gather(*map(one, identities))
    return time.monotonic() - begun, next(tries)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", default="10,100,450,1000")
    print("| nodes | all heard after | tries | manager's processor, each |\n| --- | --- | --- | --- |")
    for count in map(int, parser.parse_args().nodes.split(",")):
        swarm = PortedSwarm()
        names = [f"w{number}" for number in range(count)]
        swarm.roles |= dict.fromkeys(names, "worker")
        identities = [swarm.identity(name, "worker") for name in names]
        ours, theirs = multiprocessing.Pipe()
        manager = multiprocessing.get_context("fork").Process(target=manage, args=(swarm, theirs), daemon=True)
        manager.start()
        swarm.endpoint = ours.recv()
        seconds, tries = asyncio.run(come_back(swarm, identities))
        ours.send(None)
        print(f"| {count:,} | {seconds:.1f} s | {tries:,} | {ours.recv() / count * 1000:.1f} ms |", flush=True)
        manager.terminate()
        manager.join()


if __name__ == "__main__":
    main()
