"""A data root that cannot hold the files of containers is refused at the start, not with the first container."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import husk
from husk.errors import SystemFault
from husk.kernel.mount import mount_overlay, unmount
from tests.support.daemon import Daemon
from tests.support.doctor import assert_sound


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    parts = [tmp_path / name for name in ("lower", "upper", "work", "merged")]
    for part in parts:
        part.mkdir()
    lower, *others = map(str, parts)
    mount_overlay([lower], *others)
    yield parts[-1]
    unmount(str(parts[-1]), detach=True)


def test_a_daemon_does_not_begin_on_an_overlay(overlay: Path):
    daemon = Daemon(data_root=overlay / "data")
    try:
        with pytest.raises(AssertionError, match=r"is on overlay, which cannot hold.*--data-root") as failure:
            daemon.start()
        assert "Traceback" not in str(failure.value)
    finally:
        assert daemon.close() == []
    assert os.listdir(overlay) == []


async def test_an_engine_in_a_program_does_not_either(overlay: Path):
    with pytest.raises(SystemFault, match="is on overlay"):
        async with husk.Engine.open(data_root=overlay / "data", exec_root=overlay.parent / "run"):
            pass
    assert os.listdir(overlay) == []


def test_a_copy_of_the_data_root_is_a_backup(tmp_path: Path) -> None:
    """As docs/upkeep.md tells it: all ends, files are copied with all that they have, and put back before a start."""
    data = tmp_path / "data"
    with Daemon(data_root=data) as daemon:
        daemon.docker("run", "--name", "box", "-v", "data:/data", "busybox", "sh", "-c", "rm /bin/cat; echo a >/data/a")
        daemon.stop()
        subprocess.run(["cp", "-a", data, tmp_path / "copy"], check=True)
        shutil.rmtree(data)
        subprocess.run(["cp", "-a", tmp_path / "copy", data], check=True)
        daemon.start()
        assert daemon.docker("run", "--rm", "-v", "data:/data:ro", "busybox", "cat", "/data/a").stdout == "a\n"
        assert "D /bin/cat" in daemon.docker("diff", "box").stdout
        assert "can't remove '/bin/cat'" in daemon.docker("start", "--attach", "box").stderr
        assert_sound(daemon)
        daemon.docker("rm", "box")
