"""Containers that run to their end for somebody who waits; the runtime is a script here."""

import asyncio
import json
from pathlib import Path

import pytest

from husk.aio.tasks import Tasks
from husk.kernel import process
from husk.kernel.cgroup_moves import Moves
from husk.runtime.oci import OCIRuntime
from husk.runtime.supervise.begun import ContainerEnd
from husk.runtime.supervise.foreground import Foreground

# Finds its own options as a runtime does: everything up to the verb is global.
_SCRIPT = """#!/bin/sh
while [ "$1" != run ]; do [ "$1" = --log ] && log=$2; shift; done
while [ $# -gt 1 ]; do [ "$1" = --pid-file ] && pid=$2; shift; done
{body}
"""


class Expected(Moves):
    """A count of how often a move was expected."""

    count = 0

    def expect(self) -> None:
        self.count += 1


class Place:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.said: list[tuple[bytes, bool]] = []
        self.heard = asyncio.Event()
        self.moves = Expected()

    def _told(self, data: bytes, stderr: bool) -> None:
        self.said.append((data, stderr))
        self.heard.set()

    async def run(self, body: str) -> ContainerEnd:
        program = self.directory / "runtime"
        program.write_text(_SCRIPT.format(body=body))
        program.chmod(0o755)
        runtime = OCIRuntime("fake", str(program), (), self.directory / "root")
        return await Foreground(self.moves).run(self.directory, "id", runtime, self._told, "/x")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_output_and_status(place: Place) -> None:
    assert await place.run("echo hello; echo oh >&2; exit 3") == ContainerEnd(3)
    assert sorted(place.said) == [(b"hello\n", False), (b"oh\n", True)]
    assert await place.run("exit 0") == ContainerEnd(0)


async def test_another_one_may_follow_at_once(place: Place) -> None:
    await place.run("exit 0")
    assert place.moves.count == 1, "what it was moved for a moment ago serves the next one too"


async def test_a_runtime_that_is_killed(place: Place) -> None:
    assert await place.run("kill -9 $$") == ContainerEnd(137)


async def test_why_a_program_did_not_begin(place: Place) -> None:
    line = json.dumps({"level": "error", "msg": "executable file `/x` not found: No such file or directory"})
    ended = await place.run(f"echo '{line}' > $log; exit 1")
    assert ended == ContainerEnd(1, 'unable to start container process: exec: "/x": stat /x: no such file or directory')


async def test_what_goes_wrong_behind_a_program_s_end_is_not_its_failure(place: Place) -> None:
    line = json.dumps({"level": "error", "msg": "rmdir: device busy"})
    assert await place.run(f"echo 1 > $pid; echo '{line}' > $log; exit 4") == ContainerEnd(4)


async def test_what_runs_ends_with_whoever_waits(place: Place) -> None:
    task = Tasks().spawn(place.run("echo $$; sleep 600 & wait"), "run", awaited=True)
    async with asyncio.timeout(30):
        await place.heard.wait()
    [(pid, _)] = place.said
    assert process.start_time(int(pid)) is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert process.start_time(int(pid)) is None
