"""Time of the sync of a build's context.

    sudo .venv/bin/python -m bench.contexts [--files 20000] [--megabytes 300]

A sender of ours plays the client, so that the figures are those of both sides of the protocol, each in Python: the
first sync of many small files, one without a change, one with a single file touched, and one large file more.
"""

import asyncio
import os
import resource
import tempfile
import time
from pathlib import Path

from bench.sheet import Sheet
from husk.builder.store.sync.exchange import exchange
from husk.builder.store.workers.jobs import ReceiveJob, SendJob
from husk.storage.workers.answers import Received
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


class _Syncs:
    """A directory and its copy, which is brought up to date again and again."""

    def __init__(self, sheet: Sheet, nursery: Nursery, place: Path) -> None:
        self._sheet = sheet
        self._nursery = nursery
        self._place = place

    async def measure(self) -> None:
        files, megabytes = self._sheet.options.files, self._sheet.options.megabytes
        (self._place / "here").mkdir()
        context = self._place / "context"
        for number in range(files):
            directory = context / f"{number // _PER_DIRECTORY:05}"
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"{number:07}.txt").write_text(f"file {number}\n" * 20)
        of = f"{files:,} small files"
        await self._sync("first sync", of)
        await self._sync("nothing changed", of)
        os.utime(next(context.glob("*/*")))
        await self._sync("one file touched", of)
        with (context / "large").open("wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 20))
        await self._sync("one large file more", f"{megabytes} MB")

    async def _sync(self, what: str, of: str) -> None:
        self._sheet.say(f"{what}, {of}")
        one: asyncio.Queue[bytes] = asyncio.Queue(8)
        other: asyncio.Queue[bytes] = asyncio.Queue(8)
        table, new = self._place / "table", self._place / "new"
        send = SendJob(root=str(self._place / "context"), prefix="")
        receive = ReceiveJob(root=str(self._place / "here"), old=str(table) if table.exists() else "", new=str(new))
        start, used = time.monotonic(), _used()
        _, received = await asyncio.gather(
            exchange(self._nursery, send, _End(one, other)), exchange(self._nursery, receive, _End(other, one))
        )
        seconds = time.monotonic() - start
        new.rename(table)
        assert isinstance(received, Received)
        self._sheet.add("husk", what, "s", seconds, of=of)
        self._sheet.add("husk", f"{what}: the daemon's processor", "s", _used() - used, of=of)


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def measure(sheet: Sheet) -> None:
    nursery = Nursery()
    try:
        with tempfile.TemporaryDirectory() as place:
            await _Syncs(sheet, nursery, Path(place)).measure()
    finally:
        nursery.close()


def main() -> None:
    sheet = Sheet("contexts", __doc__)
    sheet.option("files", 20_000, quick=2_000)
    sheet.option("megabytes", 300, quick=30)
    sheet.read()
    asyncio.run(measure(sheet))
    sheet.finish()


if __name__ == "__main__":
    main()
