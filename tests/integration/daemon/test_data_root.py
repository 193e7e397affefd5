"""A data root that cannot hold the files of containers is refused at the start, not with the first container."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import husk
from husk.errors import SystemFault
from husk.kernel.mount import mount_overlay, unmount
from tests.support.daemon import Daemon


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
