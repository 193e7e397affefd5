"""The host's clock is set while a daemon runs, and while none does: services go on as if it had not been."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.engine.model.clock import parse_rfc3339
from tests.support.daemon import Daemon
from tests.support.swarm import Swarm
from tests.support.waiting import until

FAKETIME = Path(__file__).resolve().parents[3] / ".venv/peers/lib/libfaketime.so.1"
HOUR = 3600


@pytest.fixture
def offset(fresh_swarm: Swarm, tmp_path: Path) -> Iterator[Path]:
    """By how many seconds the daemon's clock is wrong; whoever writes this file sets it."""
    daemon, file = fresh_swarm.daemon, tmp_path / "offset"
    file.write_text("+0")
    daemon.program_environment |= {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    daemon.restart()
    yield file
    # With each look at the clock that file is read: this daemon is slow.
    daemon.stalls()


@pytest.mark.timeout(400)
@pytest.mark.skipif(not FAKETIME.exists(), reason="libfaketime is missing: scripts/setup --test takes it from Debian")
def test_tasks_that_fail_are_replaced_after_the_clock_was_set_back(fresh_swarm: Swarm, offset: Path) -> None:
    swarm, daemon = fresh_swarm, fresh_swarm.daemon
    swarm.create("limited", "--restart-max-attempts", "1", args=["false"])
    swarm.create("fails", "--restart-delay", "3s", args=["sh", "-c", "sleep 0.2; exit 1"])
    until(lambda: len(swarm.tasks("limited")) == 2, "it was tried once more")
    before, seen = clock(daemon), failed(swarm, set())
    offset.write_text(f"-{HOUR}")
    assert before - clock(daemon) > HOUR - 600, "it was set"
    seen = failed(swarm, seen)
    daemon.kill9()
    offset.write_text(f"-{3 * HOUR}")
    daemon.start()
    seen = failed(swarm, seen)
    offset.write_text(f"+{24 * HOUR}")
    failed(swarm, seen)
    assert len(swarm.tasks("limited")) == 2, "no limit is passed by that"


def clock(daemon: Daemon) -> int:
    return parse_rfc3339(daemon.http("GET", "/info").json()["SystemTime"]) // 10**9


def failed(swarm: Swarm, seen: set[str]) -> set[str]:
    """All tasks that have failed, when another one has, and waits for its time to be replaced."""

    def more() -> set[str]:
        tasks = swarm.tasks("fails")
        found = {task["ID"] for task in tasks if task["Status"]["State"] == "failed"}
        return found | seen if found - seen and len(found) == len(tasks) else set()

    return until(more, "another one in place of the one that failed")
