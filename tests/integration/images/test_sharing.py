"""Clients at once: one download for all who want a layer, ended by the last who leaves; removing while pulling."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.fake_registry import FakeRegistry, Stall
from tests.support.images import busybox_layer, forget_images, settled, stored
from tests.support.registry import Image, make_image, tar_of
from tests.support.waiting import until

BIG = tar_of({"big": bytes(range(256)) * 4096})


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon) -> Iterator[None]:
    yield
    forget_images(daemon)


class Client(threading.Thread):
    """A pull whose records can be looked at while they come."""

    def __init__(self, daemon: Daemon, name: str) -> None:
        super().__init__(daemon=True)
        self._connection = daemon.connection()
        self._name = name
        self.records: list[dict[str, Any]] = []
        self.start()

    def run(self) -> None:
        self._connection.request("POST", f"/images/create?fromImage={self._name}&tag=1")
        response = self._connection.getresponse()
        try:
            for line in response:
                self.records.append(json.loads(line))
        except (OSError, ValueError, AttributeError):
            pass  # it left

    def heard(self, status: str) -> bool:
        return any(str(record.get("status")).startswith(status) for record in self.records)

    def leave(self) -> None:
        sock = self._connection.sock
        assert sock is not None
        sock.shutdown(2)


def stalled(fake: FakeRegistry, name: str = "app") -> tuple[str, Image, Stall]:
    image = make_image([busybox_layer(), BIG], compression="none")
    fake.add(name, "1", image)
    stall = Stall(500_000)
    fake.faults[image.layer_digests[1]] = [stall]
    return f"{fake.host}/{name}", image, stall


async def in_thread(condition: Any, what: str) -> None:
    await asyncio.to_thread(until, condition, what)


async def test_both_see_the_progress_of_one_download(daemon: Daemon, fake: FakeRegistry) -> None:
    name, image, stall = stalled(fake)
    one = Client(daemon, name)
    await asyncio.wait_for(stall.reached.wait(), 20)
    two = Client(daemon, name)
    short = image.layer_digests[1].removeprefix("sha256:")[:12]

    def far(client: Client) -> bool:
        return any(r.get("id") == short and r.get("progressDetail", {}).get("current") for r in client.records)

    await in_thread(lambda: far(one) and far(two), "both clients see the download")
    stall.go_on.set()
    await in_thread(lambda: one.heard("Status:") and two.heard("Status:"), "both pulls end")
    assert [len(fake.asked(digest)) for digest in image.layer_digests] == [1, 1]


async def test_a_registry_that_lies_about_a_layer_spoils_nobody_elses_pull(daemon: Daemon, fake: FakeRegistry) -> None:
    async with FakeRegistry() as lying:
        name, image, stall = stalled(lying)
        fake.add("app", "1", image)
        digest = image.layer_digests[1]
        lying.blobs[digest] = bytes(len(image.blobs[digest]))
        one = Client(daemon, name)
        await asyncio.wait_for(stall.reached.wait(), 20)
        two = Client(daemon, f"{fake.host}/app")
        await in_thread(lambda: two.heard("Downloading"), "the other one has joined the download")
        stall.go_on.set()
        await in_thread(lambda: one.heard("Status:") and two.heard("Status:"), "both pulls end")
        assert len(fake.asked(digest)) == 1


async def test_images_with_a_common_layer_share_its_download(daemon: Daemon, fake: FakeRegistry) -> None:
    name, image, stall = stalled(fake)
    other = make_image([busybox_layer(), BIG, tar_of({"on": b"top"})], compression="none")
    fake.add("other", "1", other)
    one = Client(daemon, name)
    await asyncio.wait_for(stall.reached.wait(), 20)
    two = Client(daemon, f"{fake.host}/other")
    await in_thread(lambda: two.heard("Download complete"), "its own layer is there")
    stall.go_on.set()
    await in_thread(lambda: one.heard("Status:") and two.heard("Status:"), "both pulls end")
    assert len(fake.asked(image.layer_digests[1])) == 1


async def test_the_last_who_leaves_ends_the_download(daemon: Daemon, fake: FakeRegistry) -> None:
    name, _, stall = stalled(fake)
    before = settled(daemon)
    one, two = Client(daemon, name), Client(daemon, name)
    await asyncio.wait_for(stall.reached.wait(), 20)
    await in_thread(lambda: one.heard("Downloading") and two.heard("Downloading"), "both wait")
    one.leave()
    two.leave()
    await asyncio.wait_for(stall.gone.wait(), 20)
    await in_thread(lambda: stored(daemon) == before, "nothing is left of the download")


async def test_removing_while_pulling(daemon: Daemon, fake: FakeRegistry) -> None:
    """An image goes while another one that shares its layers is on its way."""
    base = make_image([busybox_layer()], compression="none")
    fake.add("base", "1", base)
    await asyncio.to_thread(daemon.docker, "pull", "-q", f"{fake.host}/base:1")
    name, _, stall = stalled(fake)
    pulling = Client(daemon, name)
    await asyncio.wait_for(stall.reached.wait(), 20)
    await in_thread(lambda: pulling.heard("Already exists"), "the common layer is found")
    await asyncio.to_thread(daemon.docker, "rmi", f"{fake.host}/base:1")
    stall.go_on.set()
    await in_thread(lambda: pulling.heard("Status:"), "the pull ends")
    ran = await asyncio.to_thread(daemon.docker, "run", "--rm", f"{name}:1", "stat", "-c", "%s", "/big")
    assert ran.stdout == f"{1 << 20}\n"


async def test_all_pulls_together_download_three_layers_at_once(daemon: Daemon, fake: FakeRegistry) -> None:
    stalls = {}
    for name in ("one", "two"):
        image = make_image([tar_of({f"{name}{n}": b"x" * 200_000}) for n in range(3)], compression="none")
        fake.add(name, "1", image)
        for digest in image.layer_digests:
            stalls[digest] = Stall(100_000)
            fake.faults[digest] = [stalls[digest]]
    clients = [Client(daemon, f"{fake.host}/{name}") for name in ("one", "two")]

    def under_way() -> list[Stall]:
        return [stall for stall in stalls.values() if stall.reached.is_set() and not stall.go_on.is_set()]

    await in_thread(lambda: all(len(c.records) >= 4 for c in clients), "both pulls know their layers")
    for left in (6, 5, 4, 3, 2, 1):
        await in_thread(lambda left=left: len(under_way()) == min(3, left), "three layers, or the last ones, come")
        under_way()[0].go_on.set()
    await in_thread(lambda: all(c.heard("Status:") for c in clients), "both pulls end")
