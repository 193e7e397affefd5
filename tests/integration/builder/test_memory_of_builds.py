"""Memory that builds leave in the daemon has a bound: it is code, and nothing of the builds themselves."""

from pathlib import Path

from tests.support.building import Builds, Context, needs_buildx
from tests.support.daemon import Daemon

# MiB. Measured with Python 3.11: 8 after the first two builds, less than 1 after ten more.
_FIRST = 11
_LATER = 2


def own_pages(daemon: Daemon) -> float:
    """MiB that are this daemon's alone."""
    assert daemon.process is not None
    lines = Path(f"/proc/{daemon.process.pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")) / 1024


@needs_buildx
def test_what_builds_leave_is_bounded(fresh_daemon: Daemon, tmp_path: Path) -> None:
    daemon = fresh_daemon
    doors = []
    for name, buildkit in (("classic", False), ("buildkit", True)):
        (tmp_path / name).mkdir()
        doors.append(Builds(daemon, Context(tmp_path / name), buildkit=buildkit))
    assert daemon.http("GET", "/images/json").status == 200
    before = own_pages(daemon)
    large = {"large": bytes(4 << 20)}
    for builds in doors:
        builds.run("FROM scratch\nCOPY . /all/\n", files=large)
    first = own_pages(daemon)
    assert first - before < _FIRST
    for number in range(5):
        for builds in doors:
            builds.run(f"FROM scratch\nCOPY . /all{number}/\n")
    assert own_pages(daemon) - first < _LATER
