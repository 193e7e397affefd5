import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from husk.kernel import cgroup_moves
from husk.kernel.cgroup_moves import Moves

Host = Callable[[str, str], Path]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Make a v2 tree of files: what /proc/self/cgroup says, and where the tree is; the cgroup's list of processes."""
    own, root = tmp_path / "own", tmp_path / "cgroup"
    monkeypatch.setattr(cgroup_moves, "_OWN", own)
    monkeypatch.setattr(cgroup_moves, "ROOT", root)

    def make(line: str, tree: str) -> Path:
        own.write_text(f"3:pids:/elsewhere\n{line}\n")
        procs = root / tree / "cgroup.procs"
        procs.parent.mkdir(parents=True)
        procs.write_text(f"1\n{os.getpid()}\n")
        return procs

    return make


async def expect(moves: Moves) -> None:
    moves.expect()
    if moves._moving is not None:
        await moves._moving


@pytest.mark.parametrize("tree", ["system/husk", "unified/system/husk"])
async def test_the_daemon_moves_to_where_it_is(host: Host, tree: str) -> None:
    procs = host("0::/system/husk", tree)
    await expect(Moves())
    assert procs.read_text() == "0"


async def test_moves_follow_each_other_only_after_a_while(host: Host) -> None:
    procs = host("0::/", "")
    moves = Moves()
    await expect(moves)
    procs.write_text("untouched")
    moves._last = time.monotonic() + 60
    await expect(moves)
    assert procs.read_text() == "untouched"
    moves._last = 0.0
    await expect(moves)
    assert procs.read_text() == "0"


async def test_a_move_of_somebody_else_serves_too(host: Host) -> None:
    procs = host("0::/", "")
    moves = Moves()
    moves.moved()
    moves._last += 60  # a test takes its time
    await expect(moves)
    assert procs.read_text() != "0"


async def test_a_daemon_that_was_moved_elsewhere_stays_there(host: Host) -> None:
    procs = host("0::/here", "here")
    moves = Moves()
    cgroup_moves._OWN.write_text("0::/there\n")
    before = procs.read_text()
    await expect(moves)
    assert procs.read_text() == before


@pytest.mark.parametrize("line", ["0::/../outside", "1:name=systemd:/", "0::/missing"])
async def test_without_a_cgroup_of_its_own_in_sight_nothing_happens(host: Host, line: str) -> None:
    procs = host(line, "outside")
    before = procs.read_text()
    await expect(Moves())
    assert procs.read_text() == before


async def test_a_list_that_does_not_name_us_is_another_cgroup(host: Host) -> None:
    procs = host("0::/", "")
    procs.write_text("1\n2\n")
    await expect(Moves())
    assert procs.read_text() == "1\n2\n"


async def test_a_kernel_that_refuses_is_asked_once(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host("0::/", "")
    asked = []

    def refuse(path: Path, data: bytes) -> int:
        asked.append(path)
        raise PermissionError

    monkeypatch.setattr(Path, "write_bytes", refuse)
    moves = Moves()
    await expect(moves)
    moves._last = 0.0
    await expect(moves)
    assert len(asked) == 1


async def test_this_host_allows_it() -> None:
    moves = Moves()
    if moves._procs is None:
        pytest.skip("this process sees no v2 cgroup of its own")
    before = cgroup_moves._own_path()
    await expect(moves)
    assert moves._procs is not None
    assert cgroup_moves._own_path() == before
