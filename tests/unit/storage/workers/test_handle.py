"""The daemon's end of a worker, on a nursery whose workers are shell scripts."""

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from husk.kernel.process import Child
from husk.storage.workers.answers import Done, Failed
from husk.storage.workers.body import BodyUpload
from husk.storage.workers.handle import Producer, Worker, WorkerDied
from husk.storage.workers.jobs import DiffJob, PackJob, PutJob, UnpackJob
from husk.storage.workers.messages import encode
from husk.storage.workers.nursery import Nursery
from tests.support.waiting import until_async

DONE, FAILED = encode(Done()), encode(Failed("no"))
UNPACK, PACK = UnpackJob("/d", "/b"), PackJob("/", [], "/")


class FakeNursery:
    """Spawns one script after the other: standard input and output, answers on descriptor 3, the rest from 4 on."""

    def __init__(self, *scripts: str) -> None:
        self.scripts = list(scripts)
        self.children: list[int] = []

    async def spawn(self, job: object, descriptors: Sequence[int], *, reserve: bool = False) -> Child:
        if not self.scripts:
            raise OSError(11, "no worker")
        numbers = [0, 1, 3, 4]
        # Out of the way of each other first: the numbers that are wanted may be taken.
        high = [(os.POSIX_SPAWN_DUP2, fd, 50 + n) for n, fd in enumerate(descriptors)]
        actions = high + [(os.POSIX_SPAWN_DUP2, 50 + n, numbers[n]) for n in range(len(descriptors))]
        pid = os.posix_spawn(
            "/bin/sh", ["sh", "-c", self.scripts.pop(0)], {"PATH": "/usr/bin:/bin"}, file_actions=actions
        )
        self.children.append(pid)
        return Child(pid, os.pidfd_open(pid))

    @property
    def nursery(self) -> Nursery:
        return cast(Nursery, self)


def say(answer: bytes) -> str:
    octal = "".join(f"\\0{byte:03o}" for byte in answer)
    return f"printf %b '{octal}' >&3"


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_what_is_written_comes_to_the_worker_and_its_answer_back(tmp_path: Path) -> None:
    before = open_files()
    nursery = FakeNursery(f"cat > {tmp_path}/got; {say(DONE)}")
    worker = await Worker.start(nursery.nursery, UNPACK)
    data = os.urandom(3_000_000)
    await worker.write(data)
    assert await worker.outcome() == Done() == await worker.outcome()
    assert (tmp_path / "got").read_bytes() == data
    worker.stop()
    worker.stop()
    await until_async(lambda: open_files() <= before + 1, "all is let go, but for the loop's own")


async def test_a_job_without_input_is_asked_for_its_answer_alone() -> None:
    before = open_files()
    nursery = FakeNursery(say(DONE), "exit 1").nursery
    assert (await Worker.ask(nursery, PACK), await Worker.ask(nursery, PACK)) == (Done(), None)
    await until_async(lambda: open_files() <= before + 1, "all is let go, but for the loop's own")


async def test_a_worker_that_takes_no_more_says_why_or_nothing() -> None:
    worker = await Worker.start(FakeNursery(f"{say(FAILED)}; exec <&-").nursery, UNPACK)
    with pytest.raises(WorkerDied):
        while True:
            await worker.write(bytes(1 << 20))
    assert await worker.outcome() == Failed("no")
    worker.stop()
    silent = await Worker.start(FakeNursery("exit 1").nursery, UNPACK)
    assert await silent.outcome() is None
    with pytest.raises(WorkerDied):
        await silent.write(b"x")
    silent.stop()


async def test_an_upload_is_the_workers_own_to_read(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    nursery = FakeNursery(f"(cat <&4; head -c 4) > {tmp_path}/got; {say(DONE)}")
    job = PutJob(
        root="/", path="/", binds=[], owner=None, keep_kinds=False, readonly_root=False, as_body=True, length=None
    )
    with ours, theirs:
        ours.sendall(b"rest")
        worker = await Worker.start_upload(nursery.nursery, job, BodyUpload(theirs.fileno(), b"begun ", None))
        assert await worker.outcome() == Done()
        worker.stop()
    assert (tmp_path / "got").read_bytes().endswith(b"rest")


async def test_the_output_of_one_is_the_input_of_the_other(tmp_path: Path) -> None:
    nursery = FakeNursery(f"printf data; {say(DONE)}", f"cat > {tmp_path}/got; {say(DONE)}")
    first, second = await Worker.start_pair(nursery.nursery, DiffJob("/u"), UNPACK)
    assert (await first.outcome(), await second.outcome()) == (Done(), Done())
    assert (tmp_path / "got").read_bytes() == b"data"
    for worker in (first, second):
        worker.stop()


async def test_a_pair_without_its_second_leaves_no_first() -> None:
    nursery = FakeNursery("sleep 100")
    with pytest.raises(OSError, match="no worker"):
        await Worker.start_pair(nursery.nursery, DiffJob("/u"), UNPACK)
    async with asyncio.timeout(10):
        while os.path.exists(f"/proc/{nursery.children[0]}"):
            await asyncio.sleep(0.01)


async def test_data_comes_out_with_answers_before_and_behind() -> None:
    producer = await Producer.start(FakeNursery(f"{say(FAILED)}; printf some; printf data; {say(DONE)}").nursery, PACK)
    assert await producer.answer() == Failed("no")
    assert b"".join([piece async for piece in producer.chunks()]) == b"somedata"
    assert (await producer.answer(), await producer.answer()) == (Done(), None)
    producer.stop()
    producer.stop()


async def test_an_answer_that_is_sent_past_us_waits_for_our_word() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        script = f"read line; printf body; {say(DONE)}"
        producer = await Producer.start_answer(FakeNursery(script).nursery, PACK, theirs.fileno())
        ours.setblocking(False)
        await asyncio.sleep(0.02)
        with pytest.raises(BlockingIOError):
            ours.recv(10)
        producer.begin()
        assert await producer.answer() == Done()
        assert ours.recv(10) == b"body"
        producer.stop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        gone = await Producer.start_answer(FakeNursery("exit").nursery, PACK, theirs.fileno())
        assert await gone.answer() is None
        gone.begin()
        gone.stop()
