import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from husk.kernel.cgroup_moves import Moves


class Host:
    """A v2 tree of files: what /proc/self/cgroup says, and where the tree is; and a clock that stands."""

    def __init__(self, directory: Path, executor: ThreadPoolExecutor) -> None:
        self.own, self.root = directory / "own", directory / "cgroup"
        self.executor = executor
        self.now = 100.0

    def make(self, line: str, tree: str) -> Path:
        """Return the cgroup's list of processes."""
        self.own.write_text(f"3:pids:/elsewhere\n{line}\n")
        procs = self.root / tree / "cgroup.procs"
        procs.parent.mkdir(parents=True)
        procs.write_text(f"1\n{os.getpid()}\n")
        return procs

    @property
    def moves(self) -> Moves:
        return Moves(self.own, self.root, lambda: self.now, self.executor)

    async def expect(self, moves: Moves) -> None:
        """Returns when the thread has done what there was to do."""
        moves.expect()
        await asyncio.get_running_loop().run_in_executor(self.executor, lambda: None)
        await asyncio.sleep(0)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with ThreadPoolExecutor(1) as executor:
        yield Host(tmp_path, executor)


@pytest.mark.parametrize("tree", ["system/husk", "unified/system/husk"])
async def test_the_daemon_moves_to_where_it_is(host: Host, tree: str) -> None:
    procs = host.make("0::/system/husk", tree)
    await host.expect(host.moves)
    assert procs.read_text() == "0"


async def test_moves_follow_each_other_only_after_a_while(host: Host) -> None:
    procs = host.make("0::/", "")
    moves = host.moves
    await host.expect(moves)
    procs.write_text("untouched")
    await host.expect(moves)
    assert procs.read_text() == "untouched"
    host.now += 60
    await host.expect(moves)
    assert procs.read_text() == "0"


async def test_a_move_of_somebody_else_serves_too(host: Host) -> None:
    procs = host.make("0::/", "")
    moves = host.moves
    moves.moved()
    await host.expect(moves)
    assert procs.read_text() != "0"


async def test_a_daemon_that_was_moved_elsewhere_stays_there(host: Host) -> None:
    procs = host.make("0::/here", "here")
    moves = host.moves
    host.own.write_text("0::/there\n")
    before = procs.read_text()
    await host.expect(moves)
    assert procs.read_text() == before


@pytest.mark.parametrize("line", ["0::/../outside", "1:name=systemd:/", "0::/missing"])
async def test_without_a_cgroup_of_its_own_in_sight_nothing_happens(host: Host, line: str) -> None:
    procs = host.make(line, "outside")
    before = procs.read_text()
    await host.expect(host.moves)
    assert procs.read_text() == before


async def test_a_list_that_does_not_name_us_is_another_cgroup(host: Host) -> None:
    procs = host.make("0::/", "")
    procs.write_text("1\n2\n")
    await host.expect(host.moves)
    assert procs.read_text() == "1\n2\n"


async def test_a_kernel_that_refuses_is_asked_once(host: Host) -> None:
    procs = host.make("0::/", "")
    moves = host.moves
    procs.unlink()
    procs.mkdir()  # which nobody can write
    await host.expect(moves)
    procs.rmdir()
    procs.write_text("untouched")
    host.now += 60
    await host.expect(moves)
    assert procs.read_text() == "untouched"


async def test_this_host_allows_it(host: Host) -> None:
    own = Path("/proc/self/cgroup")
    before = own.read_text()
    moves = Moves(executor=host.executor)
    for _ in range(2):
        await host.expect(moves)
    assert own.read_text() == before
