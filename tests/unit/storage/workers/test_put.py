"""Files on their way into a container: where they may go, what stays, and what is said when they may not.

The view is the host's here: `confine` does nothing, and places are directories of the test.
"""

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from husk.storage.workers import put as module
from husk.storage.workers.answers import Done, Failed, Invalid, Missing, Refused
from husk.storage.workers.jobs import PutJob
from husk.storage.workers.parts import Bind, Memory
from husk.storage.workers.put import Input, put
from tests.support.registry import compress
from tests.support.tars import file, special, tar


class Bytes:
    """An archive in memory; `hand_over` moves some of it at once, as the kernel does."""

    def __init__(self, data: bytes, moves: bool = False) -> None:
        self._data, self._moves = io.BytesIO(data), moves

    def readinto(self, buffer: memoryview, /) -> int:
        return self._data.readinto(buffer[:700])

    def hand_over(self, fd: int, count: int, /) -> int:
        return os.write(fd, self._data.read(min(count, 333))) if self._moves else 0


@pytest.fixture(autouse=True)
def unconfined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        module, "confine", lambda root, binds, memory: {place for place in memory.places if memory.process}
    )
    monkeypatch.chdir(tmp_path)


def job(path: Path | str, **changes: object) -> PutJob:
    values: dict[str, object] = {
        "root": "/", "path": str(path), "binds": [], "owner": (os.getuid(), os.getgid()),
        "keep_kinds": False, "readonly_root": False, "as_body": False, "length": None,
    }  # fmt: skip
    return PutJob(**values | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_files_come_as_the_archive_has_them(tmp_path: Path, compression: str, moves: bool) -> None:
    (tmp_path / "old").write_text("stays")
    archive = tar(
        special("d", tarfile.DIRTYPE, mode=0o700), file("d/x", b"1" * 5000, mode=0o640), file(".wh.old", b"w")
    )
    source = Bytes(compress(archive, compression), moves)  # type: ignore[arg-type]
    assert put(job(tmp_path), source) == Done()
    assert (tmp_path / "d/x").read_bytes() == b"1" * 5000
    assert stat.S_IMODE((tmp_path / "d/x").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700
    assert ((tmp_path / "old").read_text(), (tmp_path / ".wh.old").read_text()) == ("stays", "w")


def test_a_link_is_followed_to_where_the_files_go(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert put(job(tmp_path / "link"), Bytes(tar(file("x", b"1")))) == Done()
    assert (tmp_path / "real/x").read_bytes() == b"1"


def test_what_is_no_place_for_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    archive = tar(file("x", b"1"))
    assert put(job(tmp_path / "nowhere"), Bytes(archive)) == Missing()
    assert put(job(tmp_path / "file"), Bytes(archive)) == Invalid("extraction point is not a directory")
    assert isinstance(put(job(tmp_path / "file/x"), Bytes(archive)), Invalid)
    assert isinstance(put(job(tmp_path / "loop"), Bytes(archive)), Invalid)
    assert sorted(os.listdir(tmp_path)) == ["file", "loop"]


def test_the_innermost_mount_decides_whether_it_may_be_written(tmp_path: Path) -> None:
    inner = tmp_path / "volume/inner"
    inner.mkdir(parents=True)
    outer = Bind(source="/a", target=str(tmp_path / "volume"), readonly=True)
    writable = Bind(source="/b", target=str(inner), readonly=False)
    archive = tar(file("x", b"1"))
    assert put(job(tmp_path, readonly_root=True), Bytes(archive)) == Refused("container rootfs is marked read-only")
    assert put(job(tmp_path / "volume", binds=[outer]), Bytes(archive)) == Refused("mounted volume is marked read-only")
    assert put(job(inner, binds=[outer, writable], readonly_root=True), Bytes(archive)) == Done()
    beside = tmp_path / "volumes"
    beside.mkdir()
    assert put(job(beside, binds=[outer]), Bytes(archive)) == Done(), "a name that begins alike is another"


def test_what_is_looked_at_is_where_the_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that runs puts a link to its read-only root in the place of the directory."""
    volume, place, change = tmp_path / "volume", tmp_path / "volume/place", os.chdir
    (tmp_path / "etc").mkdir()
    place.mkdir(parents=True)

    def led(path: str) -> None:
        place.rmdir()
        place.symlink_to(tmp_path / "etc")
        change(path)

    monkeypatch.setattr(os, "chdir", led)
    bind = Bind(source="/a", target=str(volume), readonly=False)
    refused = put(job(place, binds=[bind], readonly_root=True), Bytes(tar(file("x", b"1"))))
    assert refused == Refused("container rootfs is marked read-only")
    assert os.listdir(tmp_path / "etc") == []


def test_kinds_are_kept_where_the_client_wants_that(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("")
    for archive, message in (
        (tar(file("d", b"")), "cannot overwrite directory"),
        (tar(special("f", tarfile.DIRTYPE)), "cannot overwrite non-directory"),
    ):
        answer = put(job(tmp_path, keep_kinds=True), Bytes(archive))
        assert isinstance(answer, Invalid) and message in answer.message
    assert (tmp_path / "d").is_dir() and (tmp_path / "f").is_file()
    assert put(job(tmp_path), Bytes(tar(file("d", b""), special("f", tarfile.DIRTYPE)))) == Done()
    assert (tmp_path / "d").is_file() and (tmp_path / "f").is_dir()


@pytest.mark.parametrize(
    "archive",
    [b"no archive" * 100, tar(file("x", b"1" * 2000))[:1500], compress(tar(file("x", b"1" * 2000)), "gzip")[:-20],
     tar(file("../x", b"1")), tar(file(".", b"1"))],
)  # fmt: skip
def test_an_archive_that_is_wrong_is_the_clients_fault(tmp_path: Path, archive: bytes) -> None:
    (tmp_path / "d").mkdir()
    assert isinstance(put(job(tmp_path / "d"), Bytes(archive)), Invalid)
    assert not (tmp_path / "x").exists()


def test_nothing_at_all_is_an_empty_archive(tmp_path: Path) -> None:
    assert put(job(tmp_path), Bytes(b"")) == Done()


def test_a_full_disk_is_the_hosts_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.Placer, "_place", full)
    assert isinstance(put(job(tmp_path), Bytes(tar(file("x", b"1")))), Failed)


def test_the_first_block_is_looked_at_and_still_read() -> None:
    given = Input(Bytes(b"a" * 2000, moves=True))
    assert given.head == b"a" * 512
    reading, writing = os.pipe()
    assert given.hand_over(writing, 10) == 0, "what was looked at must go this way"
    read = b""
    while piece := given.read(300):
        read += piece
        if len(read) >= 512:
            break
    assert given.hand_over(writing, 10) == 10
    os.close(writing)
    os.close(reading)


def test_a_tmpfs_is_written_to_while_its_container_runs(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    place = str(tmp_path / "scratch")
    running = job(place, memory=Memory([place], 7), readonly_root=True)
    assert put(running, Bytes(tar(file("x", b"1")))) == Done()
    refused = put(job(place, memory=Memory([place])), Bytes(tar(file("y"))))
    assert refused == Refused(f"nothing can be put into {place}, a tmpfs that is there only while the container runs")
    assert os.listdir(place) == ["x"]


def test_a_tmpfs_that_is_not_to_be_had_while_its_container_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container has unmounted it, or its runtime keeps it where the host cannot see it."""
    monkeypatch.setattr(module, "confine", lambda root, binds, memory: set())
    refused = put(job(tmp_path, memory=Memory([str(tmp_path)], 7)), Bytes(tar(file("x"))))
    assert isinstance(refused, Refused) and "has no tmpfs there any more" in refused.message
    assert os.listdir(tmp_path) == []


def test_what_the_kernel_shows_of_a_container_that_runs_takes_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "proc")
    (tmp_path / "proc/deep").mkdir(parents=True)
    monkeypatch.setattr(module, "_OF_KERNEL", (place,))
    running = job(f"{place}/deep", memory=Memory([], 7))
    refused = put(running, Bytes(tar(file("x"))))
    assert refused == Refused(f"nothing can be put into {place}, which is the kernel's in a container that runs")
    assert put(job(f"{place}/deep"), Bytes(tar(file("x")))) == Done(), "it is a plain directory"
