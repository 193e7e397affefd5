"""Processes of a build that somebody talks with: their streams, terminals, signals, and their end."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from husk.aio.tasks import Tasks
from husk.builder.graph.operations import Exec, ExecMount, ProcessSpec, SecretVariable
from husk.builder.steps.held import StepContainer
from husk.errors import Conflict, InvalidParameter
from husk.runtime.supervise.stdio import Pipes, Streams, Terminal
from tests.support.steps import Bench, FakeSession


@asynccontextmanager
async def held(bench: Bench, **words: object) -> AsyncIterator[StepContainer]:
    body = Exec(process=ProcessSpec(args=["x"]), mounts=[ExecMount(target="/", input=0)], **words)  # type: ignore[arg-type]
    async with bench.steps.held(body, [bench.root], FakeSession({"s": b"silent"})) as one:  # type: ignore[arg-type]
        yield one


async def read(streams: Streams, until: bytes = b"") -> bytes:
    said = b""
    async with asyncio.timeout(30):
        while piece := await streams.output.read():
            said += piece
            if until and until in said:
                break
    return said


async def test_streams_both_ways_and_a_second_process(bench: Bench) -> None:
    tasks = Tasks()
    async with held(bench, network="none") as container:
        with Pipes() as first, Pipes() as second:
            talk = container.talk(ProcessSpec(args=["sh", "-c", "cat; echo gone >&2; echo x > /made; exit 4"]), first)
            running = tasks.spawn(talk.run(), "first", awaited=True)
            await first.input.write(b"hello")
            assert await read(first, b"hello") == b"hello"
            wanted = ProcessSpec(args=["sh", "-c", "echo $S; cat /proc/1/cmdline; kill -0 1"], cwd="/tmp")
            beside = container.talk(wanted, second, secret_env=[SecretVariable("s", "S")])
            assert await beside.run() == 0
            assert (await read(second)).startswith(b"silent\nsh\0-c\0cat")
            first.input.close()
            assert await running == 4
            assert await first.errors.read() == b"gone\n"
        with pytest.raises(Conflict, match="has ended"):
            container.talk(ProcessSpec(args=["true"]), first)
    assert await bench.sh("ls /made 2>/dev/null || echo nothing") == "nothing\n", "what was written is thrown away"


async def test_a_terminal_has_a_size_and_takes_signals(bench: Bench) -> None:
    tasks = Tasks()
    script = "trap 'echo caught; exit 3' TERM; test -t 0 && echo ready; while :; do sleep 0.05; done"
    async with held(bench) as container:
        with Terminal() as terminal:
            terminal.resize(33, 77)
            talk = container.talk(ProcessSpec(args=["sh", "-c", script]), terminal)
            running = tasks.spawn(talk.run(), "first", awaited=True)
            await terminal.opened()
            await read(terminal, b"ready")
            assert await talk.signal(signal.SIGTERM)
            assert b"caught" in await read(terminal, b"caught")
            assert await running == 3
            assert not await talk.signal(signal.SIGTERM)


async def test_all_end_with_the_block_and_with_whoever_waits(bench: Bench) -> None:
    tasks = Tasks()
    async with held(bench) as container:
        with Pipes() as first, Pipes() as second:
            endless = ProcessSpec(args=["sh", "-c", "echo ready; exec sleep 1000"])
            running = tasks.spawn(container.talk(endless, first).run(), "one", awaited=True)
            await read(first, b"ready")
            other = tasks.spawn(container.talk(endless, second).run(), "two", awaited=True)
            await read(second, b"ready")
            other.cancel()
            await asyncio.wait([other])
            assert not running.done()
            await container.end()
            await asyncio.wait([running])
            assert running.cancelled()


async def test_what_cannot_be_run_is_refused(bench: Bench) -> None:
    async with held(bench) as container:
        with Pipes() as streams:
            with pytest.raises(InvalidParameter, match="no arguments"):
                container.talk(ProcessSpec(args=[]), streams)
            with pytest.raises(InvalidParameter, match="no such file"):
                await container.talk(ProcessSpec(args=["/nosuch"]), streams).run()
