"""Directories in memory, for what must never be on a disk: real mounts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.storage.secrets import memory


@pytest.fixture(params=["its own name", "behind a link"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """As below an exec root in /var/run, which is a link."""
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    place = tmp_path / ("run" if request.param == "its own name" else "link") / "keys"
    yield place
    memory.drop(tmp_path / "run" / "keys")


def test_one_is_made_once_and_nothing_of_it_stays(place: Path) -> None:
    memory.make(place)
    assert place.is_mount() and place.stat().st_mode & 0o777 == 0o700
    (place / "key").write_text("secret")
    memory.make(place)
    assert (place / "key").read_text() == "secret", "what is there is not hidden by another"
    for _ in range(2):
        memory.drop(place)
        assert not place.exists()
