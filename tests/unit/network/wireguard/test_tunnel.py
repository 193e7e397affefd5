"""A host's device: which key it has, when it is told, and what is left of it. Device and kernel are doubles."""

import asyncio
import errno
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.errors import SystemFault, Unavailable
from husk.kernel.rtnetlink import Link
from husk.network.settings import TunnelSettings
from husk.network.wireguard import rules
from husk.network.wireguard.fence import Fence
from husk.network.wireguard.parties import DeviceChange, DeviceState, Mesh, Party
from husk.network.wireguard.program import Program, ProgramHost
from husk.network.wireguard.tunnel import TunnelHost, WireguardTunnel, remove_left
from tests.support.rules import FakeRules

SETTINGS = TunnelSettings("wg-test", "husk", "husk-wg", 51820)
ONE = Party(b"1" * 32, "fe80::1", "192.0.2.1", 51820)


class FakeDevice:
    pidfd = -1
    start: Callable[[], bool]

    def __init__(self, state: DeviceState) -> None:
        self.state = state
        self.told: list[DeviceChange] = []
        self.fails: OSError | None = None
        self.ended = False

    def read(self) -> DeviceState:
        return self.state

    def write(self, change: DeviceChange) -> None:
        if self.fails is not None:
            raise self.fails
        self.told.append(change)
        gone = {key: party for key, party in self.state.parties.items() if key not in change.gone}
        parties = gone | {party.key: party for party in change.parties}
        self.state = DeviceState(change.key or self.state.key, change.port or self.state.port, parties)

    def let_go(self) -> None: ...

    def end(self) -> None:
        self.ended = True


class Room(TunnelHost):
    """A host where the interface is made of a device that is a double, and whose `link` somebody else may have made."""

    def __init__(self) -> None:
        self.device = FakeDevice(DeviceState())
        self.there = True
        self.link: Link | None = None
        # Where the socket of a program is that no longer runs.
        self.sockets: Path | None = None
        self.removed: list[str] = []
        self.marked = 0
        self.began: list[str] = []
        self.rules = FakeRules(SETTINGS.table)
        self.fence = Fence(SETTINGS.table, self.rules.run, self.rules.shape)
        # What a change waits for in its thread, and what it tells of itself.
        self.may_go, self.begun, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.may_go.set()

    def tunnel(self) -> WireguardTunnel:
        return WireguardTunnel(SETTINGS, under=self)

    def index(self) -> int:
        return int(self.there)

    def find(self) -> Link | None:
        return self.link

    def module(self) -> Any:
        return self._driver("module")

    def program(self) -> Any:
        if self.sockets is not None:
            return Program("wg-test", ProgramHost(sockets=self.sockets, running=lambda _: []))
        return self._driver("program")

    def _driver(self, kind: str) -> "FakeDevice":
        self.device.start = lambda: self._start(kind)
        return self.device

    def _start(self, kind: str) -> bool:
        self.began.append(kind)
        return True

    def mark(self) -> None:
        self._wait()
        self.marked += 1

    def lift(self) -> None: ...

    def number(self, own: str, mtu: int) -> None:
        self._wait()

    def remove(self) -> None:
        self._wait()
        self.removed.append("wg-test")

    def _wait(self) -> None:
        self.begun.set()
        assert self.may_go.wait(10)
        self.ended.set()


@pytest.fixture
def room() -> Room:
    return Room()


async def test_a_new_device_gets_a_new_key(room):
    tunnel = room.tunnel()
    assert tunnel.public is None
    await tunnel.open()
    await tunnel.open()
    [told] = room.device.told
    assert len(told.key) == 32 and told.port == 51820
    public = tunnel.public
    assert public is not None
    key, port = public
    assert len(key) == 44 and port == 51820


async def test_one_that_a_former_daemon_left_keeps_its_key(room):
    first = room.tunnel()
    await first.apply(Mesh("fe80::9", (ONE,)), 1440)
    await first.let_go()
    room.device.told.clear()
    second = room.tunnel()
    await second.open()
    public = second.public
    await second.apply(Mesh("fe80::9", (ONE,)), 1440)
    assert room.device.told == [] and public == second.public


async def test_a_program_that_ended_gets_the_same_key_again(room):
    tunnel = room.tunnel()
    await tunnel.apply(Mesh("fe80::9", (ONE,)), 1440)
    public = tunnel.public
    room.device, room.there = FakeDevice(DeviceState()), False
    await tunnel.apply(Mesh("fe80::9", (ONE,)), 1440)
    assert tunnel.public == public and list(room.device.state.parties) == [ONE.key]


async def test_what_is_known_is_told_once(room):
    tunnel = room.tunnel()
    for parties in ((ONE,), (ONE,), ()):
        await tunnel.apply(Mesh("fe80::9", parties), 1440)
    assert room.device.told[1:] == [DeviceChange(parties=(ONE,)), DeviceChange(gone=(ONE.key,))]


async def test_what_could_not_be_told_is_not_taken_for_told(room):
    tunnel = room.tunnel()
    both = (ONE, Party(b"2" * 32, "fe80::2", "192.0.2.2", 51820))
    await tunnel.apply(Mesh("fe80::9", (ONE,)), 1440)
    room.device.fails = OSError(errno.EIO, "no")
    with pytest.raises(SystemFault, match="cannot be told"):
        await tunnel.apply(Mesh("fe80::9", both), 1440)
    # It was done by half.
    room.device.fails, room.device.state = (
        None,
        DeviceState(room.device.state.key, 51820, {party.key: party for party in both}),
    )
    await tunnel.apply(Mesh("fe80::9", (ONE,)), 1440)
    assert list(room.device.state.parties) == [ONE.key]


@pytest.mark.parametrize("step", ["open", "apply", "remove"])
async def test_who_is_cancelled_leaves_nothing_that_goes_on(room: Room, step: str) -> None:
    tunnel = room.tunnel()
    mesh = Mesh("fe80::9", (ONE,))
    works = {"open": tunnel.open, "apply": lambda: tunnel.apply(mesh, 1440), "remove": tunnel.remove}
    if step != "open":
        await tunnel.open()
    for event in (room.begun, room.ended, room.may_go):
        event.clear()
    tasks = Tasks()
    work = tasks.spawn(works[step](), "change", awaited=True)
    await asyncio.to_thread(room.begun.wait, 10)
    work.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not work.done(), "its thread goes on"
    room.may_go.set()
    await asyncio.wait([work])
    assert work.cancelled() and room.ended.is_set()
    # What was done is known: the device is watched, and can be ended.
    assert (tunnel.public is None) is (step == "remove")
    await tunnel.remove()
    assert room.device.ended


async def test_one_that_is_removed_forgets_its_key(room):
    tunnel = room.tunnel()
    await tunnel.open()
    before, old = tunnel.public, room.device
    await tunnel.remove()
    assert old.ended and room.removed == ["wg-test"] and tunnel.public is None
    room.device = FakeDevice(DeviceState())
    await tunnel.open()
    assert tunnel.public != before


async def test_rules_and_socket_go_though_the_interface_is_gone(room: Room, tmp_path: Path) -> None:
    room.sockets, room.there = tmp_path, False
    for remove in (room.tunnel().remove, partial(asyncio.to_thread, remove_left, SETTINGS, room)):
        (tmp_path / "wg-test.sock").touch()
        room.rules.ran.clear()
        await remove()
        assert room.rules.ran == [rules.removal("husk-wg")] and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [(errno.EADDRINUSE, Unavailable, "--wireguard-port"), (errno.EIO, SystemFault, "cannot be set up")],
)
async def test_what_cannot_be_had_leaves_nothing(room: Any, error: int, kind: type[Exception], words: str) -> None:
    room.device.fails = OSError(error, "no")
    tunnel = room.tunnel()
    with pytest.raises(kind, match=words):
        await tunnel.open()
    assert room.device.ended and room.removed == ["wg-test"] and tunnel.public is None


@pytest.mark.parametrize(
    "link",
    [
        Link(7, "wg-test", "wireguard", 0, True, 1420, ""),
        Link(7, "wg-test", "dummy", 0, False, 1500, ""),
        Link(7, "wg-test", "tun", 0, False, 1500, "another daemon's"),
    ],
)
async def test_somebody_elses_interface_is_left_as_it_is(room: Room, link: Link) -> None:
    room.link = link
    tunnel = room.tunnel()
    with pytest.raises(Unavailable, match=r"has an interface wg-test, .* somebody else made it"):
        await tunnel.open()
    assert tunnel.public is None
    await tunnel.remove()
    await asyncio.to_thread(remove_left, SETTINGS, room)
    assert room.began == [] and room.marked == 0 and not room.device.ended


async def test_one_that_a_killed_daemon_could_not_mark_is_taken(room: Room) -> None:
    room.link = Link(7, "wg-test", "tun", 0, False, 1500, "")
    await room.tunnel().open()
    assert room.began == ["program"] and room.marked == 1
