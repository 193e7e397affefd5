"""Processes that somebody talks with, on a double of what runs them; real ones are in integration/builder."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.builder.graph.operations import Exec, ExecMount, ProcessSpec
from husk.builder.steps.held import StepContainer
from husk.builder.steps.mounts import Prepared
from husk.errors import Conflict, Forbidden, InvalidParameter
from husk.runtime.assembly.step import Layered
from husk.runtime.supervise.begun import ContainerEnd

STREAMS: Any = SimpleNamespace(console_socket="")


class Steps:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ran: list[tuple[str, list[str]]] = []
        self.end = asyncio.Event()
        self.complaint = ""
        self.writes = True

    def is_process(self, number: int) -> None:
        """Write down which process runs, as a runtime does."""
        (self.directory / "pid").write_text(str(number))

    def record_of(self, body: Any, *, tty: bool) -> Any:
        return SimpleNamespace(id="r", tty=tty)

    def files_of(self, record: Any) -> Any:
        return object()

    def bundle_of(self, record: Any) -> Path:
        return self.directory

    async def talk(self, record, body, prepared, client, files, streams):
        self.ran.append(("first", body.process.args))
        if self.writes:
            self.is_process(1)
        await self.end.wait()
        return ContainerEnd(4, self.complaint)

    async def talk_beside(self, record, body, prepared, client, files, streams, directory):
        assert directory.parent == self.directory
        self.ran.append(("beside", body.process.args))
        return ContainerEnd(0)


@pytest.fixture
def steps(tmp_path):
    return Steps(tmp_path)


def container(steps: Any, **limits: Any) -> StepContainer:
    body = Exec(process=ProcessSpec(args=["x"], hostname="h"), mounts=[ExecMount(target="/", input=0)])
    prepared = Prepared(root=Layered(()), mounts=[], env=[], agents=[], kept={})
    return StepContainer(steps, body, prepared, None, **limits)


@pytest.fixture
def held(steps):
    return container(steps)


async def test_the_first_is_the_containers_own(held, steps):
    tasks = Tasks()
    first = tasks.spawn(held.talk(ProcessSpec(args=["a"]), STREAMS).run(), "first", awaited=True)
    beside = held.talk(ProcessSpec(args=["b"]), STREAMS)
    assert not await beside.signal(15), "it does not run yet"
    assert await beside.run() == 0
    steps.end.set()
    assert await first == 4
    assert steps.ran == [("first", ["a"]), ("beside", ["b"])]
    with pytest.raises(Conflict, match="has ended"):
        held.talk(ProcessSpec(args=["c"]), STREAMS)


async def test_a_process_has_no_rights_that_its_user_did_not_allow(steps, held):
    with pytest.raises(Forbidden, match=r"^security\.insecure is not allowed$"):
        held.talk(ProcessSpec(args=["a"]), STREAMS, insecure=True)
    held.talk(ProcessSpec(args=["the first"]), STREAMS)
    with pytest.raises(Forbidden):
        held.talk(ProcessSpec(args=["beside"]), STREAMS, insecure=True)
    assert steps.ran == []


async def test_no_second_without_a_first(steps):
    held = container(steps, patience=0.05)
    held.talk(ProcessSpec(args=["never run"]), STREAMS)
    with pytest.raises(Conflict, match="does not run"):
        await held.talk(ProcessSpec(args=["b"]), STREAMS).run()


async def test_what_could_not_be_started(held, steps):
    steps.complaint = "exec: no such file"
    steps.end.set()
    with pytest.raises(InvalidParameter, match="no such file"):
        await held.talk(ProcessSpec(args=["a"]), STREAMS).run()


async def test_there_are_not_too_many(steps):
    held = container(steps, most=1)
    held.talk(ProcessSpec(args=["a"]), STREAMS)
    with pytest.raises(InvalidParameter, match="1 processes at most"):
        held.talk(ProcessSpec(args=["a"]), STREAMS)


async def test_all_end_when_it_ends(held):
    running = Tasks().spawn(held.talk(ProcessSpec(args=["a"]), STREAMS).run(), "first", awaited=True)
    await asyncio.sleep(0)
    await held.end()
    await asyncio.wait([running])
    assert running.cancelled()


async def test_a_signal_for_one_that_is_being_started_waits_for_its_number(held, steps):
    steps.writes = False
    child = await asyncio.create_subprocess_exec("sleep", "1000")
    talk = held.talk(ProcessSpec(args=["a"]), STREAMS)
    running = Tasks().spawn(talk.run(), "first", awaited=True)
    sending = Tasks().spawn(talk.signal(15), "a signal", awaited=True)
    while not steps.ran:
        await asyncio.sleep(0)
    assert not sending.done()
    steps.is_process(child.pid)
    assert await sending and await child.wait() == -15
    steps.end.set()
    assert await running == 4
    assert not await talk.signal(15), "it has ended"
