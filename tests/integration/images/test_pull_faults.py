"""Pulls that go wrong, that several clients want at once, and that nobody wants any more."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.daemon import Daemon
from tests.support.fake_registry import Corrupt, Cut, FakeRegistry, Stall, Status, Truncate
from tests.support.images import forget_images, settled, stored
from tests.support.pulling import NOISE, damaged, failed, in_thread, nothing_new, pull, statuses
from tests.support.registry import (
    Registry,
    make_image,
    make_index,
    push_image,
    tar_of,
)
from tests.support.waiting import until
from tests.support.workers import workers_of


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon) -> Iterator[None]:
    """Each test begins with nothing but the first image, and ends with nothing half done on disk."""
    yield
    forget_images(daemon)
    until(lambda: not stored(daemon).half_written, "the store tidies up")


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_errors_before_the_stream_have_a_status(daemon: Daemon, registry: Registry) -> None:
    push_image(registry, "there", "1", [tar_of({"a": b""})])
    before = settled(daemon)
    answer = pull(daemon, f"{registry.host}/there", "2")
    assert answer.status == 404
    assert answer.message == f"manifest for {registry.host}/there:2 not found: manifest unknown: manifest unknown"
    assert pull(daemon, f"{registry.host}/nowhere", "1").status == 404
    answer = pull(daemon, "127.0.0.1:1/app", "1")
    assert answer.status == 500
    assert answer.message == 'Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused'
    answer = pull(daemon, f"{registry.host}/UPPER", "1")
    assert (answer.status, answer.message) == (
        400,
        "invalid reference format: repository name (UPPER) must be lowercase",
    )
    assert pull(daemon, f"{registry.host}/there", "not a tag".replace(" ", "%20")).status == 400
    assert daemon.http("POST", "/images/create").status == 400
    assert stored(daemon) == before


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("fault", [Corrupt(), Truncate(10)])
async def test_a_damaged_layer_ends_the_stream_with_an_error(
    daemon: Daemon, fake: FakeRegistry, fault: Corrupt | Truncate, position: int
) -> None:
    name, image = damaged(fake)
    fake.faults[image.layer_digests[position]] = [fault]
    before = settled(daemon)
    answer = await in_thread(pull, daemon, name, "1")
    assert failed(answer) == f"filesystem layer verification failed for digest {image.layer_digests[position]}"
    await in_thread(nothing_new, daemon, before)
    assert statuses(await in_thread(pull, daemon, name, "1"))[-1].startswith("Status: Downloaded newer image")


async def test_a_damaged_configuration_or_manifest(daemon: Daemon, fake: FakeRegistry) -> None:
    name, image = damaged(fake)
    before = settled(daemon)
    fake.faults[image.config_digest] = [Corrupt()]
    answer = await in_thread(pull, daemon, name, "1")
    assert "image config verification failed" in failed(answer)
    fake.faults[image.digest] = [Corrupt()]
    answer = await in_thread(pull, daemon, name, image.digest)
    assert (answer.status, answer.message) == (500, f"manifest verification failed for digest {image.digest}")
    await in_thread(nothing_new, daemon, before)


async def test_a_layer_that_is_not_what_the_configuration_names(daemon: Daemon, fake: FakeRegistry) -> None:
    right, other = make_image([tar_of({"a": b"right"})]), make_image([tar_of({"a": b"other"})])
    document = json.loads(right.manifest)
    document["layers"] = json.loads(other.manifest)["layers"]
    fake.add_manifest("mixed", "1", json.dumps(document).encode(), right.media_type)
    fake.blobs.update(right.blobs | other.blobs)
    before = settled(daemon)
    assert "does not have the content" in failed(await in_thread(pull, daemon, f"{fake.host}/mixed", "1"))
    await in_thread(nothing_new, daemon, before)


async def test_a_broken_download_is_resumed(daemon: Daemon, fake: FakeRegistry) -> None:
    name, image = damaged(fake)
    digest = image.layer_digests[0]
    fake.faults[digest] = [Cut(100_000)]
    answer = await in_thread(pull, daemon, name, "1")
    assert statuses(answer)[-1] == f"Status: Downloaded newer image for {name}:1"
    assert "Retrying in 1 seconds" in statuses(answer)
    first, second = fake.asked(digest)
    assert "Range" not in first
    assert 0 < int(second["Range"].removeprefix("bytes=").rstrip("-")) <= 100_000


async def test_a_registry_that_fails_for_a_moment_is_asked_again(daemon: Daemon, fake: FakeRegistry) -> None:
    name, image = damaged(fake)
    fake.faults["1"] = [Status(503)]
    fake.faults[image.layer_digests[1]] = [Status(500)]
    assert statuses(await in_thread(pull, daemon, name, "1"))[-1].startswith("Status: Downloaded")


async def test_a_registry_that_loses_a_blob(daemon: Daemon, fake: FakeRegistry) -> None:
    name, image = damaged(fake)
    del fake.blobs[image.layer_digests[2]]
    before = settled(daemon)
    done = await in_thread(lambda: daemon.docker("pull", f"{name}:1", check=False))
    assert done.returncode == 1 and "unknown blob" in done.stderr
    await in_thread(nothing_new, daemon, before)


async def test_an_index_in_the_fake_registry_is_pulled_too(daemon: Daemon, fake: FakeRegistry) -> None:
    image = make_image([tar_of({"a": b"indexed"})])
    fake.add("inner", image.digest, image)
    body, media_type = make_index([image])
    fake.add_manifest("inner", "1", body, media_type)
    assert statuses(await in_thread(pull, daemon, f"{fake.host}/inner", "1"))[-1].startswith("Status: Downloaded")


# -- several at once, and none -----------------------------------------------------------------------------------------


async def test_two_clients_pull_the_same_image_at_once(daemon: Daemon, fake: FakeRegistry) -> None:
    name, image = damaged(fake)
    stall = Stall(1000)
    fake.faults[image.layer_digests[0]] = [stall]
    one = asyncio.get_running_loop().run_in_executor(None, pull, daemon, name, "1")
    await asyncio.wait_for(stall.reached.wait(), 20)
    two = asyncio.get_running_loop().run_in_executor(None, pull, daemon, name, "1")
    while len(fake.asked("manifests/1")) < 2:
        await asyncio.sleep(0.01)
    stall.go_on.set()
    answers = await asyncio.gather(one, two)
    for answer in answers:
        assert statuses(answer)[-1].startswith("Status: ")
    assert len(fake.asked(image.layer_digests[0])) == 1, "the layer was downloaded twice"


async def test_a_client_that_leaves_ends_its_pull(daemon: Daemon, fake: FakeRegistry) -> None:
    name, image = damaged(fake)
    before = settled(daemon)
    stall = Stall(1000)
    fake.faults[image.layer_digests[0]] = [stall]
    with daemon.docker_process("pull", f"{name}:1") as client:
        await asyncio.wait_for(stall.reached.wait(), 20)
        client.kill()
        await in_thread(client.communicate)
    await asyncio.wait_for(stall.gone.wait(), 20)
    await in_thread(nothing_new, daemon, before)
    await in_thread(until, lambda: not workers_of(daemon.pid), "no worker is left")


async def test_a_client_that_leaves_does_not_take_the_other_ones_layers(daemon: Daemon, fake: FakeRegistry) -> None:
    name, image = damaged(fake)
    stall = Stall(1000)
    fake.faults[image.layer_digests[0]] = [stall]
    with daemon.docker_process("pull", f"{name}:1") as client:
        await asyncio.wait_for(stall.reached.wait(), 20)
        other = asyncio.get_running_loop().run_in_executor(None, pull, daemon, name, "1")
        while len(fake.asked("manifests/1")) < 2:
            await asyncio.sleep(0.01)
        client.kill()
        await in_thread(client.communicate)
    # The download goes on for the one who stays, or begins again if that one had not joined it yet.
    stall.go_on.set()
    assert statuses(await other)[-1].startswith("Status: ")
    shown = (await in_thread(daemon.http, "GET", f"/images/{name}:1/json")).json()
    assert len(shown["RootFS"]["Layers"]) == 3


def test_images_that_share_layers_are_pulled_and_removed_at_once(daemon: Daemon, registry: Registry) -> None:
    shared = [tar_of({"base": NOISE}), tar_of({"second": b"2"})]
    for n in range(6):
        push_image(registry, "shared", str(n), [*shared, tar_of({"own": str(n).encode()})])
    before = settled(daemon)
    name = f"{registry.host}/shared"

    def come_and_go(n: int) -> None:
        for _ in range(3):
            assert statuses(pull(daemon, name, str(n)))[-1].startswith("Status: ")
            shown = daemon.http("GET", f"/images/{name}:{n}/json")
            assert shown.status == 200, shown.body
            gone = daemon.http("DELETE", f"/images/{name}:{n}")
            assert gone.status == 200, gone.body

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(come_and_go, range(6)))
    nothing_new(daemon, before)


def test_an_image_stays_for_the_name_that_was_pulled_while_its_other_name_went(
    daemon: Daemon, registry: Registry
) -> None:
    layers = [tar_of({"same": NOISE})]
    for name in ("one", "two", "three"):
        push_image(registry, f"names/{name}", "1", layers)
    before = settled(daemon)

    def come_and_go(name: str) -> None:
        for _ in range(8):
            assert statuses(pull(daemon, f"{registry.host}/names/{name}", "1"))[-1].startswith("Status: ")
            shown = daemon.http("GET", f"/images/{registry.host}/names/{name}:1/json")
            assert shown.status == 200, shown.body
            gone = daemon.http("DELETE", f"/images/{registry.host}/names/{name}:1")
            assert gone.status == 200, gone.body

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(come_and_go, ("one", "two", "three")))
    nothing_new(daemon, before)
