"""Images that want too much: too large a layer is refused by its daemon, and a large pull costs it no memory."""

import gzip
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.doctor import assert_sound
from tests.support.images import busybox_layer, settled, stored
from tests.support.registry import Registry, push_image, tar_of
from tests.support.waiting import until

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def limited() -> Iterator[Daemon]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with Daemon("--max-layer-size", "5m") as daemon:
        yield daemon


def refused(text: str) -> bool:
    return "layer is larger than 5242880 bytes when unpacked, which is this daemon's max-layer-size" in text


def test_a_bomb_is_not_pulled(limited: Daemon, registry: Registry) -> None:
    before = settled(limited)
    push_image(registry, "bomb", "1", [busybox_layer(), tar_of({"zeros": bytes(60 * MEGABYTE)})])
    pull = limited.docker("pull", f"{registry.host}/bomb:1", check=False)
    assert pull.returncode == 1 and refused(pull.stderr), pull.stderr
    until(lambda: stored(limited) == before, "nothing of it is left")
    push_image(registry, "small", "1", [busybox_layer(), tar_of({"zeros": bytes(MEGABYTE)})])
    limited.docker("pull", f"{registry.host}/small:1")
    limited.docker("rmi", f"{registry.host}/small:1")
    until(lambda: stored(limited) == before, "all of it is gone")


def test_a_bomb_is_not_imported_and_not_committed(limited: Daemon) -> None:
    before = settled(limited)
    bomb = gzip.compress(tar_of({"zeros": bytes(60 * MEGABYTE)}), 1)
    answer = limited.http("POST", "/images/create?fromSrc=-&repo=bomb", bomb, {"Content-Type": "application/x-tar"})
    assert refused(answer.body.decode())
    limited.docker("run", "--name", "big", "busybox", "sh", "-c", "head -c 6000000 /dev/zero > /zeros")
    commit = limited.docker("commit", "big", "bomb", check=False)
    assert commit.returncode == 1 and refused(commit.stderr), commit.stderr
    limited.docker("rm", "big")
    until(lambda: stored(limited) == before, "nothing of it is left")
    limited.stop()
    assert_sound(limited)
    limited.start()


def memory(pid: int, field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def test_the_daemon_stays_small_while_it_pulls_and_loads(fresh_daemon: Daemon, registry: Registry) -> None:
    daemon = fresh_daemon
    layers = [tar_of({f"noise{n}": os.urandom(60 * MEGABYTE)}) for n in range(2)]
    push_image(registry, "large", "1", [busybox_layer(), *layers], compression="none")
    daemon.docker("run", "--rm", "busybox", "true")
    before = memory(daemon.pid, "VmRSS")
    Path(f"/proc/{daemon.pid}/clear_refs").write_text("5")  # the peak counts from now
    daemon.docker("pull", f"{registry.host}/large:1")
    saved = daemon.docker_bytes("save", f"{registry.host}/large:1").stdout
    daemon.docker("rmi", f"{registry.host}/large:1")
    daemon.docker_bytes("load", input=saved)
    assert memory(daemon.pid, "VmHWM") - before < 40 * MEGABYTE
    assert memory(daemon.pid, "VmHWM") < 150 * MEGABYTE
