"""`kill -9` at any moment of a pull, a load, a commit, a removal or the garbage collection at start.

Whatever the moment was: the next start serves, what was acknowledged runs, and `husk doctor --check-store` finds
nothing damaged and nothing left over.
"""

import asyncio
import contextlib
import os
import random
import shutil
import subprocess
import threading
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.doctor import assert_sound
from tests.support.fake_registry import FakeRegistry, Stall
from tests.support.images import busybox_layer
from tests.support.registry import Registry, make_image, push_image, tar_of
from tests.support.waiting import until

ROUNDS = 2
LONGEST = 0.6
"""Within so many seconds each of the things below is over, on any machine that runs the tests."""


def noise(number: int) -> bytes:
    """A layer with many files and much that cannot be compressed."""
    files = {f"noise/{number}/{n}": os.urandom(2000) for n in range(300)}
    return tar_of({**files, f"mark{number}": b"marked\n", f"noise/{number}/big": os.urandom(1_500_000)})


def crash_during(daemon: Daemon, chance: random.Random, work: Callable[[], object], longest: float = LONGEST) -> bool:
    """Run `work` in a thread and kill the daemon at some moment of it; tell if the work was acknowledged before."""
    acknowledged = []

    def attempt() -> None:
        with contextlib.suppress(OSError, HTTPException, subprocess.SubprocessError, AssertionError):
            work()
            acknowledged.append(True)

    worker = threading.Thread(daemon=True, target=attempt)
    worker.start()
    threading.Event().wait(chance.uniform(0, longest))
    done = bool(acknowledged)
    daemon.kill9()
    worker.join()
    return done


def recover(daemon: Daemon, *images: str) -> None:
    """Start, run what must be there, stop, and check."""
    daemon.start()
    for image in images:
        assert daemon.docker("run", "--rm", image, "echo", "alive").stdout == "alive\n"
    trash = daemon.config.data_root / "layers/trash"
    until(lambda: not os.listdir(trash), "what was thrown away is deleted")
    daemon.stop()
    assert_sound(daemon)
    daemon.start()


def post(daemon: Daemon, path: str, body: object = None) -> None:
    answer = daemon.http("POST", path, body, {"Content-Type": "application/x-tar"})
    assert answer.status in (200, 201) and b'"error"' not in answer.body, answer.body


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An archive with an image of three layers."""
    image = make_image([busybox_layer(), noise(1), noise(2)], compression="none")
    directory = tmp_path_factory.mktemp("layout")
    layout = directory / "blobs/sha256"
    layout.mkdir(parents=True)
    for digest, blob in {**image.blobs, image.digest: image.manifest}.items():
        (layout / digest.removeprefix("sha256:")).write_bytes(blob)
    (directory / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (directory / "index.json").write_text(
        f'{{"schemaVersion": 2, "manifests": [{{"mediaType": "{image.media_type}", "digest": "{image.digest}", '
        f'"size": {len(image.manifest)}, "annotations": '
        '{"io.containerd.image.name": "docker.io/library/saved:1"}}]}'
    )
    return subprocess.run(["tar", "-C", str(directory), "-c", "."], capture_output=True, check=True).stdout


def test_pulls(fresh_daemon: Daemon, chance: random.Random) -> None:
    daemon = fresh_daemon
    with Registry() as registry:
        kept = []
        for number in range(ROUNDS):
            name = f"{registry.host}/app{number}:1"
            push_image(registry, f"app{number}", "1", [busybox_layer(), noise(number), noise(number + 10)])
            pull = f"/images/create?fromImage={registry.host}/app{number}&tag=1"
            if crash_during(daemon, chance, lambda path=pull: post(daemon, path)):  # type: ignore[misc]
                kept.append(name)
            recover(daemon, "busybox", *kept)
        for number in range(ROUNDS):
            daemon.docker("pull", f"{registry.host}/app{number}:1")
            assert daemon.docker("run", "--rm", f"{registry.host}/app{number}:1", "cat", f"/mark{number}").stdout


def test_loads(fresh_daemon: Daemon, saved: bytes, chance: random.Random) -> None:
    daemon = fresh_daemon
    for _ in range(ROUNDS):
        loaded = crash_during(daemon, chance, lambda: post(daemon, "/images/load", saved))
        recover(daemon, "busybox", *(["saved:1"] if loaded else []))
        daemon.docker("rmi", "saved:1", check=False)
    post(daemon, "/images/load", saved)
    assert daemon.docker("run", "--rm", "saved:1", "cat", "/mark2").stdout == "marked\n"


def test_commits(fresh_daemon: Daemon, chance: random.Random) -> None:
    daemon = fresh_daemon
    script = "for n in $(seq 200); do head -c 9000 /dev/urandom > /f$n; done; rm /bin/ls; ln /f1 /same"
    daemon.docker("run", "--name", "source", "busybox", "sh", "-c", script)
    made = []
    for number in range(ROUNDS):
        if crash_during(daemon, chance, lambda n=number: post(daemon, f"/commit?container=source&repo=made{n}")):  # type: ignore[misc]
            made.append(f"made{number}")
        recover(daemon, "busybox", *made)


def test_removals(fresh_daemon: Daemon, saved: bytes, chance: random.Random) -> None:
    daemon = fresh_daemon
    for _ in range(ROUNDS):
        post(daemon, "/images/load", saved)
        removed = crash_during(daemon, chance, lambda: daemon.http("DELETE", "/images/saved:1"), 0.1)
        recover(daemon, "busybox")
        left = daemon.docker("images", "-q", "saved").stdout
        assert not (removed and left)
        if left:
            assert daemon.docker("run", "--rm", "saved:1", "cat", "/mark2").stdout == "marked\n"


def kill(daemon: Daemon) -> None:
    """In the middle of its start, or after it."""
    if daemon.process is not None:
        daemon.process.kill()


async def test_garbage_collection_at_start(fresh_daemon: Daemon, tmp_path: Path, chance: random.Random) -> None:
    """Layers without an image, directories and blobs without a record: what crashes leave, and more of it."""
    daemon = fresh_daemon
    image = make_image([busybox_layer(), *(noise(n) for n in range(4)), tar_of({"last": os.urandom(100_000)})])
    async with FakeRegistry() as fake:
        fake.add("app", "1", image)
        stall = Stall(50_000)
        fake.faults[image.layer_digests[-1]] = [stall]
        with daemon.docker_process("pull", f"{fake.host}/app:1") as client:
            await asyncio.wait_for(stall.reached.wait(), 20)
            layers = daemon.config.data_root / "layers/l"
            await asyncio.to_thread(until, lambda: len(os.listdir(layers)) == 7, "the others are there")
            daemon.kill9()
            await asyncio.to_thread(client.communicate)
    root, kept = daemon.config.data_root, tmp_path / "kept"
    subprocess.run(["cp", "-a", root, kept], check=True)
    for _ in range(ROUNDS):
        shutil.rmtree(root)
        subprocess.run(["cp", "-a", kept, root], check=True)
        for number in range(3):
            subprocess.run(["cp", "-a", kept / "layers/l", layers / f"z{number}"], check=True)
            (daemon.config.data_root / "blobs/sha256" / f"{number:064x}").write_bytes(b"garbage")
        with contextlib.suppress(AssertionError):
            killer = threading.Timer(chance.uniform(0.25, 0.8), kill, [daemon])
            killer.start()
            await asyncio.to_thread(daemon.start)
        await asyncio.to_thread(killer.join)
        if daemon.process is not None:
            daemon.kill9()
        await asyncio.to_thread(recover, daemon, "busybox")
        daemon.stop()
    await asyncio.to_thread(assert_sound, daemon, "--deep")
