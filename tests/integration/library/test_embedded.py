"""An engine as a guest in a program: what it needs of the program, and how the program finds itself afterwards."""

import asyncio
import gc
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from husk.client.container import Container
from husk.errors import Conflict, Unavailable
from husk.library.embedded import Engine
from tests.support.engines import Belongings, Place
from tests.support.waiting import until_async

SOURCES = Path(__file__).parents[3] / "src"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers")


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with Place() as place:
        yield place


@pytest.fixture(scope="module", autouse=True)
def libuv_is_set_up() -> None:
    """libuv keeps one pipe for ever for the first loop of a process."""
    loop = uvloop.new_event_loop()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def settings_of_the_process() -> list[object]:
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    mask = os.umask(0o027)
    os.umask(mask)
    log = logging.getLogger()
    return [
        handlers,
        signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        mask,
        os.getcwd(),
        dict(os.environ),
        (gc.get_freeze_count(), gc.get_threshold()),
        resource.getrlimit(resource.RLIMIT_NOFILE),
        (log.level, list(log.handlers)),
        threading.excepthook,
    ]


async def work_with(place: Place) -> None:
    loop = asyncio.get_running_loop()
    executor, before = getattr(loop, "_default_executor", None), settings_of_the_process()
    async with Engine.open(place.config) as engine:
        assert settings_of_the_process() == before
        result = await engine.run("busybox", ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"])
        _, blocked, _, ignored = result.stdout.split()
        # The C library keeps 32 and 33 for itself, and a program that was started with them ignored cannot change that.
        assert [int(each, 16) & ~(0b11 << 31) for each in (blocked, ignored)] == [0, 0]
        async with engine.container("busybox", ["sleep", "100"]) as box:
            await box.put("/in/data", b"x" * 100_000)
            assert (await box.exec(["stat", "-c", "%a", "/in/data", "/etc/hosts"])).stdout == b"644\n644\n"
            assert await box.get("/in/data") == b"x" * 100_000
    assert getattr(loop, "_default_executor", None) is executor
    assert settings_of_the_process() == before
    assert gc.isenabled()


@pytest.mark.parametrize(("new_loop", "main_thread"), [(asyncio.new_event_loop, True), (uvloop.new_event_loop, False)])
def test_a_program_is_left_as_it_was(
    place: Place, new_loop: Callable[[], asyncio.AbstractEventLoop], main_thread: bool
):
    failures: list[BaseException] = []

    def program() -> None:
        had = Belongings()
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(work_with(place))
            assert had.new() == []
        except BaseException as error:
            failures.append(error)

    old_mask, ignored = os.umask(0o077), signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        if main_thread:
            program()
        else:
            thread = threading.Thread(target=program)
            thread.start()
            thread.join()
    finally:
        os.umask(old_mask)
        signal.signal(signal.SIGUSR1, ignored)
    assert failures == []


async def test_engines_live_beside_each_other(place: Place):
    with Place() as other:
        async with Engine.open(place.config) as one, Engine.open(other.config) as two:
            ran = await asyncio.gather(
                one.run("busybox", "hostname", hostname="one"), two.run("busybox", "hostname", hostname="two")
            )
            assert [each.stdout for each in ran] == [b"one\n", b"two\n"]
            async with one.container("busybox", "sleep 100") as box:
                assert await two.containers.list(all=True) == []
                with pytest.raises(Conflict, match=rf"data root .* is in use .*\(pid {os.getpid()}\)"):
                    async with Engine.open(place.config):
                        pass
                assert await one.containers.list() == [box]


async def test_a_program_that_computes_does_not_keep_containers_waiting(place: Place, tmp_path: Path):
    """The engine answers names and restarts containers although the program's own loop stands still."""
    runs = tmp_path / "runs"
    async with Engine.open(place.config) as engine:
        count = ["sh", "-c", "echo >> /out/runs"]
        box = await engine.containers.create("busybox", count, restart="always", volumes=[f"{tmp_path}:/out"])
        await box.start()
        end = time.monotonic() + 60.0
        while not runs.exists() or runs.stat().st_size < 3:
            assert time.monotonic() < end, "the container was not started again"
        await box.remove(force=True)


async def test_another_loop_of_the_program_uses_the_same_engine(place: Place):
    async def elsewhere(engine: Engine) -> bytes:
        async with engine.connect() as same:
            return (await same.run("busybox", "echo there")).stdout

    async with Engine.open(place.config) as engine:
        assert await asyncio.to_thread(asyncio.run, elsewhere(engine)) == b"there\n"


async def test_detached_containers_run_on_and_others_end(place: Place):
    async with Engine.open(place.config, detach=True) as engine:
        box = await engine.containers.create("busybox", "sleep 100", name="worker", stop_signal="SIGKILL")
        await box.start()
        await box.commit("mine:1")
    async with Engine.open(place.config) as engine:
        assert (await engine.containers.get("worker")).status == "running"
    async with Engine.open(place.config) as engine:
        box = await engine.containers.get("worker")
        assert (box.status, box.attrs["State"]["ExitCode"]) == ("exited", 137)
        await box.remove()
        assert (await engine.run("mine:1", "echo kept", pull="never")).stdout == b"kept\n"


async def test_calls_that_run_when_it_closes_end(place: Place):
    async with Engine.open(place.config, detach=True) as engine:
        box = await engine.containers.create("busybox", "sleep 100", name="waited-for", stop_signal="SIGKILL")
        await box.start()
        waiting = asyncio.get_running_loop().create_task(box.wait())
        following = asyncio.get_running_loop().create_task(_all_of(box))
        await asyncio.sleep(0.05)
    with pytest.raises(Unavailable):
        await waiting
    with pytest.raises(Unavailable):
        await following
    with pytest.raises(Unavailable, match="closed"):
        await engine.ping()
    async with Engine.open(place.config) as engine:
        await (await engine.containers.get("waited-for")).remove(force=True)


async def _all_of(box: Container) -> list[str]:
    return [line async for line in box.logs(follow=True).lines()]


async def test_opening_can_be_cancelled_at_any_moment(place: Place):
    had = Belongings()
    for delay in (0, 0.001, 0.01, 0.05, 0.1, 0.3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(delay), Engine.open(place.config):
                await asyncio.sleep(100)
    assert had.new() == []


@pytest.mark.parametrize("network", ["none", "bridge"])
def test_what_a_killed_program_runs_ends_with_it(place: Place, network: str):
    """Nobody hears any more how it ends; a child that the program has forked does not keep it."""
    program = """
import asyncio, json, os, sys, time
import husk
async def main():
    async with husk.Engine.open(**json.loads(sys.argv[1])) as engine:
        running = asyncio.ensure_future(engine.run("busybox", "sleep 100", network=sys.argv[2]))
        while not (found := await engine.containers.list()):
            await asyncio.sleep(0.01)
        await found[0].reload()
        if not (child := os.fork()):
            time.sleep(60)
        print(child, found[0].attrs["State"]["Pid"], flush=True)
        await running
asyncio.run(main())
"""
    settings = {name: str(getattr(place.config, name)) for name in ("data_root", "exec_root", "bip")}
    with subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(settings), network],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    ) as host:
        assert host.stdout is not None
        child, process = map(int, host.stdout.readline().split())
        host.kill()

    async def next_program() -> None:
        await until_async(lambda: not Path(f"/proc/{process}").exists(), "its end", deadline=30)
        async with Engine.open(place.config) as engine:
            async with asyncio.timeout(30):
                while await engine.containers.list(all=True):
                    await asyncio.sleep(0.01)

    try:
        asyncio.run(next_program())
    finally:
        os.kill(child, signal.SIGKILL)


def test_what_a_killed_program_leaves_is_taken_over(place: Place):
    """Its containers run on, and are those of the next engine; its forked children hold nothing."""
    program = """
import asyncio, json, os, sys, time
import husk
async def main():
    async with husk.Engine.open(**json.loads(sys.argv[1])) as engine:
        box = await engine.containers.create("busybox", "sleep 100", name="orphan", stop_signal="SIGKILL")
        await box.start()
        if not (child := os.fork()):
            time.sleep(60)
        print(child, flush=True)
        await asyncio.sleep(100)
asyncio.run(main())
"""
    settings = {name: str(getattr(place.config, name)) for name in ("data_root", "exec_root", "bip")}
    with subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(settings)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    ) as host:
        assert host.stdout is not None
        child = int(host.stdout.readline())
        host.kill()

    async def next_program() -> None:
        async with Engine.open(place.config) as engine:
            box = await engine.containers.get("orphan")
            assert box.status == "running"
            assert (await box.exec("echo still here")).stdout == b"still here\n"
        async with Engine.open(place.config) as engine:
            box = await engine.containers.get("orphan")
            assert box.status == "exited"
            await box.remove()

    try:
        asyncio.run(next_program())
    finally:
        os.kill(child, signal.SIGKILL)
