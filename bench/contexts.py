"""How long does it take to sync a build's context? `python bench/contexts.py [files] [megabytes]`, as root.

A sender of ours plays the client, so that the figures are those of both sides of the protocol, each in Python: the
first sync of many small files, one without a change, one with a single file touched, and one large file more.
"""

import asyncio
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from husk.storage.sync.exchange import exchange
from husk.storage.workers.messages import Received, ReceiveJob, SendJob
from husk.storage.workers.nursery import Nursery

_PER_DIRECTORY = 100


class _End:
    def __init__(self, incoming: asyncio.Queue[bytes], outgoing: asyncio.Queue[bytes]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> bytes:
        return await self._incoming.get()

    async def send(self, data: bytes, /) -> None:
        await self._outgoing.put(data)

    async def end(self) -> None:
        await self._outgoing.put(b"")


async def main(files: int, megabytes: int) -> None:
    nursery = Nursery()
    try:
        with tempfile.TemporaryDirectory() as place:
            await _measure(nursery, Path(place), files, megabytes)
    finally:
        nursery.close()


async def _measure(nursery: Nursery, place: Path, files: int, megabytes: int) -> None:
    (place / "here").mkdir()
    context = place / "context"
    for number in range(files):
        directory = context / f"{number // _PER_DIRECTORY:05}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{number:07}.txt").write_text(f"file {number}\n" * 20)
    await _sync(nursery, place, f"{files} small files")
    await _sync(nursery, place, "nothing changed")
    os.utime(next(context.glob("*/*")))
    await _sync(nursery, place, "one file touched")
    with (context / "large").open("wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1 << 20))
    await _sync(nursery, place, f"a file of {megabytes} MB")


async def _sync(nursery: Nursery, place: Path, what: str) -> None:
    one: asyncio.Queue[bytes] = asyncio.Queue(8)
    other: asyncio.Queue[bytes] = asyncio.Queue(8)
    table, new = place / "table", place / "new"
    send = SendJob(root=str(place / "context"), prefix="")
    receive = ReceiveJob(root=str(place / "here"), old=str(table) if table.exists() else "", new=str(new))
    start, used = time.monotonic(), _used()
    _, received = await asyncio.gather(
        exchange(nursery, send, _End(one, other)), exchange(nursery, receive, _End(other, one))
    )
    seconds = time.monotonic() - start
    new.rename(table)
    assert isinstance(received, Received)
    daemon = _used() - used
    print(f"{what:24} {seconds:7.3f} s; the daemon's processor {daemon:.3f} s; {received.written} bytes written")


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(main(*(numbers + [20_000, 300][len(numbers) :])))
