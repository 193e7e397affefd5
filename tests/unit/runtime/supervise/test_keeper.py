"""Containers without a monitor: the process that keeps them is real, a script plays the runtime."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from husk.errors import SystemFault
from husk.kernel import process
from husk.kernel.lean_mounts import Bring, Copies, LeanMounts
from husk.runtime.oci import OCIRuntime
from husk.runtime.supervise import keeper
from husk.runtime.supervise.conmon import Apart, Bundle, Monitor, MonitoredProcess
from husk.runtime.supervise.keeper import Keeper, KeptProcess
from tests.support.waiting import until_async

RUNTIME = """#!/bin/sh
while [ "$1" != --log ]; do shift; done
log=$2 bundle=$5 pid=$7
cd "$bundle"
. ./config
"""


class Lean:
    """No namespace at all."""

    def __init__(self) -> None:
        self.forgotten: list[Sequence[Bring]] = []

    async def call(self, work: Callable[[], Any], copies: Copies) -> Any:
        return work()

    def forget(self, brought: Sequence[Bring]) -> None:
        self.forgotten.append(brought)


class Monitored(Exception):
    """A monitor is asked for: of which container, and if it is made apart."""


class Place:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lean = Lean()
        self.apart = True
        self.keeper = Keeper(cast(Monitor, self), cast(LeanMounts, self.lean))
        program = directory / "crun"
        program.write_text(RUNTIME)
        program.chmod(0o755)
        self.runtime = OCIRuntime("crun", str(program), (), directory / "root")

    # what is asked of a monitor

    async def started_apart(self, start: Callable[[], None], apart: Apart) -> Sequence[Bring]:
        if self.apart:
            start()
        return apart.copies.brought if self.apart else ()

    def moved(self) -> None:
        pass

    async def create(
        self, bundle: Bundle, runtime: OCIRuntime, timeout: float = 120.0, apart: Apart | None = None
    ) -> MonitoredProcess:
        raise Monitored(bundle.container_id, apart is not None)

    # what a test asks for

    async def run(self, script: str, timeout: float = 20, input: bool = False) -> KeptProcess:
        directory = self.directory / f"b{len(list(self.directory.iterdir()))}"
        directory.mkdir()
        (directory / "config").write_text(script)
        self.bundle = Bundle("c1", directory, command="sh", stdin_open=input, stdin_once=input)
        kept = await self.keeper.create(self.bundle, self.runtime, timeout, Apart(Copies([Bring("/a", "/b")])))
        assert isinstance(kept, KeptProcess)
        return kept

    async def made(self, first: str, input: bool = False) -> KeptProcess:
        """A container whose first process does this."""
        return await self.run(f"exec 3<&0; sh -c '{first}' <&3 3<&- & echo $! > $pid", input=input)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    before = descriptors()
    place = Place(tmp_path)
    yield place
    place.keeper.close()
    await process.reap_all()
    # What an earlier test of this process has left at work may have a file open for a moment.
    await until_async(lambda: descriptors() <= before, "that no descriptor is left", 20)


def descriptors() -> set[str]:
    """Return this process's open descriptors, without the one by which they are listed."""
    return {number for number in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{number}")}


async def output(kept: KeptProcess) -> list[tuple[int, bytes]]:
    pieces = []
    console = await kept.attach()
    while (piece := await console.read()) is not None:
        pieces.append(piece)
    return pieces


def said(place: Place) -> str:
    """Return the number of the process that plays the runtime, as far as it has written it down."""
    file = place.directory / "b1" / "me"
    text = file.read_text() if file.exists() else ""
    return text.strip() if text.endswith("\n") else ""


async def test_it_is_read_written_to_and_waited_for(place: Place) -> None:
    kept = await place.made("cat; echo err >&2; exit 5", input=True)
    console = await kept.attach()
    assert kept.pid and not kept.process.has_ended
    await console.write(b"hello")
    console.close_stdin()
    assert await output(kept) == [(1, b"hello"), (2, b"err\n")]
    await kept.wait()
    kept.close()
    assert (place.bundle.directory / "exit").read_text() == "5"
    assert len(place.lean.forgotten) == 1


async def test_one_process_keeps_many(place: Place) -> None:
    all = [await place.made(f"exit {number}") for number in range(3)]
    for kept in all:
        await kept.wait()
        assert await output(kept) == []
        kept.close()
    assert len({kept.monitor_pid for kept in all}) == 1


async def test_what_the_runtime_complains_about_is_told(place: Place) -> None:
    with pytest.raises(SystemFault, match="OCI runtime create failed: crun create failed: no such thing"):
        await place.run("""echo '{"msg": "no such thing", "level": "error"}' > "$log"; exit 1""")


async def test_a_runtime_that_takes_too_long_is_ended(place: Place) -> None:
    with pytest.raises(SystemFault, match=r"crun create did not finish within 2 seconds"):
        await place.run("echo $$ > me; exec sleep 60", timeout=2)
    # On a busy machine it may have ended before it said who it is.
    number = said(place)
    assert not number or not Path(f"/proc/{number}").exists()


async def test_who_is_cancelled_leaves_no_runtime_at_work(place: Place) -> None:
    creating = asyncio.get_running_loop().create_task(place.run("echo $$ > me; exec sleep 60"))
    number = await until_async(lambda: said(place), "the runtime at work")
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert not Path(f"/proc/{number}").exists()


async def test_what_must_be_among_the_mounts_of_the_host_takes_a_monitor(place: Place) -> None:
    place.apart = False
    with pytest.raises(Monitored) as asked:
        await place.run("exit 0")
    assert asked.value.args == ("c1", True)


async def test_what_cannot_be_made_apart_takes_a_monitor(place: Place) -> None:
    with pytest.raises(Monitored) as asked:
        await place.keeper.create(Bundle("c1", place.directory), place.runtime)
    assert asked.value.args == ("c1", False)


async def test_output_that_nobody_takes_holds_nothing_up(place: Place) -> None:
    kept = await place.made("head -c 1048576 /dev/zero; exit 4")
    async with asyncio.timeout(20):
        await kept.wait()
    kept.close()
    assert (place.bundle.directory / "exit").read_text() == "4"


async def test_containers_end_with_the_engine(place: Place) -> None:
    kept = await place.made("exec sleep 60")
    pidfd = process.pidfd_open(kept.pid)
    place.keeper.close()
    async with asyncio.timeout(20):
        await process.wait_exit(pidfd)
        await kept.wait()
    os.close(pidfd)
    kept.close()
    with pytest.raises(SystemFault, match="no more containers"):
        await place.run("exit 0")


async def test_without_the_process_all_are_lost_and_the_next_gets_a_new_one(place: Place) -> None:
    kept = await place.made("exec sleep 60")
    os.kill(kept.monitor_pid, 9)
    async with asyncio.timeout(20):
        await kept.wait()
    assert await output(kept) == []
    kept.close()
    assert not (place.bundle.directory / "exit").exists()
    os.kill(kept.pid, 9)
    again = await place.made("exit 0")
    assert again.monitor_pid != kept.monitor_pid
    await again.wait()
    assert await output(again) == []
    again.close()


async def test_where_the_process_cannot_be_started_there_are_monitors(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Whatever level an earlier test of this process has left.
    with caplog.at_level(logging.WARNING, keeper.__name__):
        for program in ("/no/such/program", "/bin/false"):
            place.keeper._fails = False
            monkeypatch.setattr(sys, "executable", program)
            with pytest.raises(Monitored):
                await place.run("exit 0")
    assert caplog.text.count("each container that is run has a monitor") == 2
