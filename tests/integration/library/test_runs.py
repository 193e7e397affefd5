"""Containers that the library runs to their end: they have no monitor, and are containers like all others."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

import husk
from husk.errors import HuskError, NotFound
from tests.support.engines import Place

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[husk.Engine]:
    with Place() as place:
        async with husk.Engine.open(place.config) as engine:
            yield engine
            assert await engine.containers.list(all=True) == []
            assert place.traces.settle(os.getpid()) == []


def has_monitor(container_id: str) -> bool:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue
        if container_id in words and Path(words[0]).name == "conmon":
            return True
    return False


async def running(engine: husk.Engine) -> husk.Container:
    async with asyncio.timeout(30):
        while not (found := await engine.containers.list()):
            await asyncio.sleep(0.01)
    return found[0]


async def test_others_can_look_at_one_and_talk_with_it(engine: husk.Engine):
    async with asyncio.TaskGroup() as group:
        script = "echo first; read line < /tmp/go; echo $line; exit 4"
        run = group.create_task(engine.run("busybox", ["sh", "-c", f"mkfifo /tmp/go; {script}"], network="none"))
        box = await running(engine)
        assert not has_monitor(box.id)
        assert [process[-1] for process in (await box.top())["Processes"]]
        await box.pause()
        await box.unpause()
        async with box.attach() as console:
            while (await box.exec(["test", "-p", "/tmp/go"])).exit_code:
                await asyncio.sleep(0.01)
            with suppress(NotFound):  # the container may be gone with it
                await box.exec(["sh", "-c", "echo second > /tmp/go"])
            seen = b"".join([data async for _, data in console])
    result = run.result()
    assert (result.exit_code, result.stdout) == (4, b"first\nsecond\n")
    assert seen.endswith(b"second\n")


async def test_much_goes_in_and_out(engine: husk.Engine):
    given = os.urandom(900_000)
    result = await engine.run("busybox", ["sh", "-c", "tee /dev/stderr"], input=given, network="none")
    assert (result.stdout, result.stderr) == (given, given)


async def test_input_that_nobody_reads_keeps_nobody(engine: husk.Engine):
    result = await engine.run("busybox", "true", input=bytes(900_000), network="none")
    assert (result.exit_code, result.stdout) == (0, b"")


async def test_what_cannot_be_started_is_told_as_ever(engine: husk.Engine):
    with pytest.raises(HuskError, match='exec: "nothing": executable file not found'):
        await engine.run("busybox", "nothing", network="none")
    assert await engine.containers.list(all=True) == []


async def test_one_that_is_started_again_is_a_container_like_all_others(engine: husk.Engine):
    """Somebody else restarts it: its first end is that of the run, and nothing is left when it ends again."""
    async with asyncio.TaskGroup() as group:
        run = group.create_task(engine.run("busybox", "sleep 100", network="none", stop_signal="SIGKILL"))
        box = await running(engine)
        await box.restart()
        assert has_monitor(box.id)
        await box.kill()
    assert run.result().exit_code == 137


async def test_one_with_a_terminal_and_one_with_a_log_have_a_monitor(engine: husk.Engine):
    for options in ({"tty": True}, {"log_driver": "json-file"}):
        async with asyncio.TaskGroup() as group:
            run = group.create_task(engine.run("busybox", "sleep 100", network="none", **options))
            box = await running(engine)
            assert has_monitor(box.id)
            await box.kill()
        assert run.result().exit_code == 137


async def test_what_a_process_leaves_behind_ends_with_the_first(engine: husk.Engine):
    result = await engine.run("busybox", ["sh", "-c", "sleep 1000 & echo begun"], network="none", timeout=60)
    assert (result.stdout, result.timed_out) == (b"begun\n", False)
