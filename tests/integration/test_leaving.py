"""A client sends its request and leaves without reading the answer: what changes something goes on, the rest ends.

dockerd 28.5 does so for imports, creations, restarts, removals and copies. When the connection is closed it ends loads,
commits, starts and prunes wherever they are, which is nothing to imitate.
"""

import contextlib
import io
import json
import os
import tarfile
from collections.abc import Callable

import pytest

from tests.support.daemon import Daemon
from tests.support.images import busybox_layer, forget_images, settled, stored
from tests.support.registry import tar_of
from tests.support.waiting import until

TAR = "application/x-tar"


def leave(daemon: Daemon, method: str, path: str, body: bytes | None = None, **headers: str) -> None:
    """Send a whole request, and close the connection at once."""
    head = f"{method} {path} HTTP/1.1\r\nHost: docker\r\n"
    fields = {**headers, "Content-Length": str(len(body or b""))}
    head += "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    with daemon.raw() as client:
        client.sendall(head.encode() + b"\r\n" + (body or b""))


def as_json(value: object) -> tuple[bytes, str]:
    return json.dumps(value).encode(), "application/json"


@pytest.fixture
def archive(daemon: Daemon) -> bytes:
    """An image as `docker save` writes it, not in the store any more."""
    assert daemon.http("POST", "/images/create?fromSrc=-&repo=left&tag=1", busybox_layer()).status == 200
    saved = daemon.docker_bytes("save", "left:1").stdout
    forget_images(daemon)
    return saved


def has_image(daemon: Daemon, name: str) -> bool:
    return daemon.http("GET", f"/images/{name}/json").status == 200


def descriptors(daemon: Daemon) -> int:
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def status(daemon: Daemon, name: str) -> str:
    answer = daemon.http("GET", f"/containers/{name}/json")
    return answer.json()["State"]["Status"] if answer.status == 200 else "gone"


@pytest.mark.parametrize("quiet", ["", "?quiet=1"])
def test_an_archive_is_loaded(daemon: Daemon, archive: bytes, quiet: str) -> None:
    leave(daemon, "POST", f"/images/load{quiet}", archive, Content_Type=TAR)
    until(lambda: has_image(daemon, "left:1"), "the image is loaded")
    assert daemon.docker("run", "--rm", "left:1", "echo", "hi").stdout == "hi\n"
    forget_images(daemon)


def test_docker_py_loads_without_reading_the_answer(daemon: Daemon, archive: bytes) -> None:
    with contextlib.closing(daemon.sdk()) as sdk:
        sdk.api.load_image(archive)
    until(lambda: has_image(daemon, "left:1"), "the image is loaded")
    forget_images(daemon)


def test_an_archive_that_is_cut_off_is_not_loaded(daemon: Daemon, archive: bytes) -> None:
    before = settled(daemon)
    clean = before._replace(half_written=frozenset())
    # The client may leave while its progress is being written to it, or not: in one of six the load waited for ever.
    for _ in range(12):
        with daemon.raw() as client:
            client.sendall(b"POST /images/load HTTP/1.1\r\nHost: docker\r\nContent-Type: application/x-tar\r\n")
            client.sendall(b"Content-Length: %d\r\n\r\n" % len(archive) + archive[: len(archive) // 2])
        until(lambda: stored(daemon) == clean, "nothing is left of the load")


def test_a_file_system_is_imported(daemon: Daemon) -> None:
    leave(daemon, "POST", "/images/create?fromSrc=-&repo=imported&tag=1", busybox_layer())
    until(lambda: has_image(daemon, "imported:1"), "the image is imported")
    forget_images(daemon)


def test_files_are_copied_into_a_container(daemon: Daemon) -> None:
    """Small ones, which the daemon writes itself, and large ones, which a worker reads from the client's socket."""
    daemon.docker("create", "--name", "box", "busybox")
    for size in (10, 3_000_000):
        path = "/containers/box/archive?path=/"
        leave(daemon, "PUT", path, tar_of({f"file{size}": bytes(size)}), Content_Type=TAR)

        def copied(size: int = size) -> bool:
            answer = daemon.http("GET", f"/containers/box/archive?path=/file{size}")
            if answer.status != 200:
                return False
            with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
                return tar.getmembers()[0].size == size

        until(copied, f"the file of {size} bytes is there")


def test_containers_are_made_started_stopped_and_removed(daemon: Daemon) -> None:
    body, kind = as_json({"Image": "busybox", "Cmd": ["sleep", "600"]})
    steps: list[tuple[Callable[[], None], str]] = [
        (lambda: leave(daemon, "POST", "/containers/create?name=box", body, Content_Type=kind), "created"),
        (lambda: leave(daemon, "POST", "/containers/box/start"), "running"),
        (lambda: leave(daemon, "POST", "/containers/box/pause"), "paused"),
        (lambda: leave(daemon, "POST", "/containers/box/unpause"), "running"),
        (lambda: leave(daemon, "POST", "/containers/box/stop?t=0"), "exited"),
        (lambda: leave(daemon, "POST", "/containers/box/restart"), "running"),
        (lambda: leave(daemon, "DELETE", "/containers/box?force=1"), "gone"),
    ]
    for step, expected in steps:
        step()

        def arrived(expected: str = expected) -> bool:
            return status(daemon, "box") == expected

        until(arrived, f"the container is {expected}")


def test_commits_tags_and_prunes_are_done(daemon: Daemon) -> None:
    daemon.docker("run", "--name", "box", "busybox", "touch", "/made")
    leave(daemon, "POST", "/commit?container=box&repo=committed")
    until(lambda: has_image(daemon, "committed"), "the image is made")
    leave(daemon, "POST", "/images/committed/tag?repo=other&tag=1")
    until(lambda: has_image(daemon, "other:1"), "the name is there")
    leave(daemon, "POST", "/containers/prune")
    until(lambda: status(daemon, "box") == "gone", "the container is pruned")
    leave(daemon, "DELETE", "/images/other:1")
    until(lambda: not has_image(daemon, "other:1"), "the name is gone")
    leave(daemon, "DELETE", "/images/committed")
    until(lambda: not has_image(daemon, "committed"), "the image is gone")


@pytest.mark.parametrize(
    "path",
    [
        "GET /events",
        "GET /containers/box/stats",
        "GET /containers/box/logs?stdout=1&follow=1",
        "GET /containers/box/export",
        "GET /images/busybox/get",
        "GET /images/get?names=busybox",
        "GET /containers/box/archive?path=/",
        "POST /containers/box/wait",
        "POST /containers/box/attach?stream=1&stdout=1",
    ],
)
def test_what_only_tells_ends_and_holds_nothing(daemon: Daemon, path: str) -> None:
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "600")
    daemon.http("GET", "/_ping")
    before = descriptors(daemon)
    method, _, target = path.partition(" ")
    for _ in range(20):
        leave(daemon, method, target)
    until(lambda: descriptors(daemon) <= before + 5, "no descriptor stays open")
    assert status(daemon, "box") == "running"
