"""Limits of log readers: what they may hold, and how many read at once."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from husk.engine.logs import readers
from husk.engine.logs.read import AsRecords, read_log
from husk.engine.logs.readers import Readers
from husk.engine.logs.records import LogQuery


def test_one_takes_large_pieces_and_many_small_ones() -> None:
    everybody = Readers()
    assert everybody.piece == readers.LARGEST
    with ExitStack() as stack:
        held = 0
        for _ in range(1000):
            stack.enter_context(everybody.one_more())
            held += everybody.piece
        assert everybody.piece == readers.SMALLEST
        assert held < 32 << 20
    assert everybody.piece == readers.LARGEST


async def test_a_few_read_at_a_time_and_all_read_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "container.log"
    log.write_bytes(b"2024-01-02T03:04:05.000000006Z stdout F hello\n" * 3000)
    monkeypatch.setattr(readers, "LARGEST", 1 << 14)
    lock, too_many = threading.Lock(), threading.Event()
    reading = most = 0
    pread = os.pread

    def counted(*arguments: int) -> bytes:
        nonlocal reading, most
        with lock:
            reading += 1
            most = max(most, reading)
        if most > readers.AT_ONCE:
            too_many.set()
        too_many.wait(0.01)  # for others to come in as well
        with lock:
            reading -= 1
        return pread(*arguments)

    monkeypatch.setattr(os, "pread", counted)
    everybody = Readers()

    async def read() -> int:
        return sum(
            [len(batch) async for batch in read_log(log, LogQuery(), AsRecords(), lambda: True, readers=everybody)]
        )

    with ThreadPoolExecutor(32) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        assert await asyncio.gather(*(read() for _ in range(20))) == [3000] * 20
    assert most == readers.AT_ONCE
