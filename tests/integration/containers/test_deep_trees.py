"""A container nests directories deeper than a path can be long, and deeper than Python recurses: everything goes on."""

import io
import json
import tarfile

import pytest

from tests.support.client import Answer
from tests.support.daemon import Daemon
from tests.support.doctor import assert_sound
from tests.support.waiting import until

# Each level is two bytes of a path: at 2,000 a path is nearly as long as it may be.
CHAIN = 1500
DEPTH = 2500
BOTTOM = "content at the bottom"


def nest(depth: int, place: str = "/deep") -> str:
    """A shell's script that nests directories at `place`, with a file at the bottom and one beside each piece."""
    lengths = [CHAIN] * (depth // CHAIN) + [depth % CHAIN]
    lines = [f"mkdir -p /build {place}", f"echo -n {BOTTOM!r} >/build/file", "ln /build/file /build/twin"]
    for length in lengths:
        way = "d/" * length
        lines += [f"mkdir -p /next/{way}", f"mv /build /next/{way}x", "echo beside >/next/z", "mv /next /build"]
    return " && ".join([*lines, f"mv /build {place}/top"])


def names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return [member.name for member in tar]


def bottom(archive: bytes) -> bytes:
    """Return the content of the deepest file of an archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        deepest = max((member for member in tar if member.isreg()), key=lambda member: len(member.name))
        found = tar.extractfile(deepest)
        assert found is not None
        return found.read()


@pytest.fixture
def deep(daemon: Daemon) -> int:
    daemon.docker("run", "--name", "deep", "busybox", "sh", "-c", nest(DEPTH))
    return DEPTH


def test_it_is_removed_and_the_next_daemon_starts(deep: int, daemon: Daemon):
    directory = (
        daemon.config.data_root / "containers" / daemon.docker("inspect", "-f", "{{.Id}}", "deep").stdout.strip()
    )
    assert directory.is_dir()
    daemon.docker("rm", "deep")
    assert not directory.exists()
    daemon.restart()
    daemon.docker("run", "--rm", "busybox", "true")


def test_what_a_killed_daemon_leaves_of_it_is_removed_at_the_next_start(deep: int, daemon: Daemon):
    container = daemon.docker("inspect", "-f", "{{.Id}}", "deep").stdout.strip()
    data = daemon.config.data_root / "containers"
    daemon.docker("create", "--name", "other", "busybox")
    daemon.stop()
    (data / container).rename(data / ("f" * 64))
    daemon.start()
    until(lambda: not (data / ("f" * 64)).exists(), "the rest of the container is gone")
    daemon.docker("rm", "deep", "other")


def test_it_is_exported_and_copied_whole(deep: int, daemon: Daemon):
    exported = daemon.docker_bytes("export", "deep").stdout
    assert len([name for name in names(exported) if name.startswith("deep/top")]) > deep
    assert bottom(exported) == BOTTOM.encode()
    copied = daemon.docker_bytes("cp", "deep:/deep/top", "-").stdout
    assert len(names(copied)) > deep
    assert bottom(copied) == BOTTOM.encode()


def test_it_is_copied_into_another_container(deep: int, daemon: Daemon):
    copied = daemon.docker_bytes("cp", "deep:/deep/top", "-").stdout
    daemon.docker("create", "--name", "other", "busybox")
    daemon.docker_bytes("cp", "-", "other:/tmp", input=copied)
    assert daemon.docker_bytes("cp", "other:/tmp/top", "-").stdout == copied


def test_it_is_committed_saved_and_imported(deep: int, daemon: Daemon):
    daemon.docker("commit", "deep", "deep-image")
    assert_sound(daemon, "--deep")
    daemon.docker("create", "--name", "again", "deep-image")
    exported = daemon.docker_bytes("export", "deep").stdout
    again = daemon.docker_bytes("export", "again").stdout
    assert bottom(again) == BOTTOM.encode()
    assert [name for name in names(again) if "deep" in name] == [name for name in names(exported) if "deep" in name]
    daemon.docker("rm", "again")
    daemon.docker("rmi", "deep-image")


def test_its_size_and_its_changes_are_told(deep: int, daemon: Daemon):
    found = json.loads(daemon.docker("inspect", "-s", "deep").stdout)[0]
    # A file with two names counts once, each of the others ("beside" and a new line) for itself.
    assert found["SizeRw"] == len(BOTTOM) + 7 * (deep // CHAIN + 1)
    answer: Answer = daemon.http("GET", "/containers/deep/changes")
    assert answer.status == 200
    told = answer.json()
    # What has no path any more that a client could name is not told one by one.
    assert len(told) >= min(deep, 2000) and max(len(change["Path"]) for change in told) <= 4096 + 256
    daemon.docker("system", "df", "-v")


def test_a_volume_gets_it_from_an_image_and_loses_it(deep: int, daemon: Daemon):
    daemon.docker("commit", "deep", "deep-image")
    daemon.docker("run", "--name", "filled", "-v", "deep-volume:/deep", "deep-image", "ls", "/deep/top")
    copied = daemon.docker_bytes("cp", "filled:/deep/top", "-").stdout
    assert bottom(copied) == BOTTOM.encode()
    daemon.docker("system", "df", "-v")
    daemon.docker("rm", "filled")
    daemon.docker("volume", "rm", "deep-volume")
    daemon.docker("rmi", "deep-image")
