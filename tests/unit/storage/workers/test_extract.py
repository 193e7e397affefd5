"""The amount of work that a hostile archive makes; its files are shown with real workers (`tests/integration`)."""

import os
from pathlib import Path

import pytest

from husk.storage.tar.stream import TarStream
from husk.storage.workers.extract import Extractor
from tests.support.archives import member, write
from tests.support.work import lines_run


def archive(count: int) -> bytes:
    """Many directories, of which each is replaced by a file later."""
    mine = {"uid": os.getuid(), "gid": os.getgid()}
    names = [f"d{number}" for number in range(count)]
    directories = [member(name, type=b"5", **mine) for name in names]
    return write(*((one, b"") for one in [*directories, *(member(name, **mine) for name in names)]))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it gives files to users")
def test_to_clear_a_directory_away_costs_the_same_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(count: int) -> int:
        place = tmp_path / str(count)
        place.mkdir()
        monkeypatch.chdir(place)
        pieces = iter([archive(count), b""])
        extractor = Extractor(TarStream(lambda: memoryview(next(pieces))))
        lines = lines_run(lambda: extractor.run())
        assert sorted(path.is_file() for path in place.iterdir()) == [True] * count
        return lines

    assert work(200) < 2.2 * work(100)
