"""A host's device: which key it has, when it is told, and what is left of it. Device and kernel are doubles."""

import asyncio
import errno
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.errors import SystemFault, Unavailable
from husk.kernel.rtnetlink import Link
from husk.network import host
from husk.network.settings import TunnelSettings
from husk.network.wireguard import fence, program, rules
from husk.network.wireguard import tunnel as module
from husk.network.wireguard.parties import DeviceChange, DeviceState, Mesh, Party
from husk.network.wireguard.tunnel import WireguardTunnel, remove_left

SETTINGS = TunnelSettings("wg-test", "husk", "husk-wg", 51820)
ONE = Party(b"1" * 32, "fe80::1", "192.0.2.1", 51820)


class FakeDevice:
    pidfd = -1

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


class Room:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.device = FakeDevice(DeviceState())
        self.there = True
        self.removed: list[str] = []
        self.ran: list[str] = []
        monkeypatch.setattr(WireguardTunnel, "_make", lambda _: self.device)
        monkeypatch.setattr(WireguardTunnel, "_mark", lambda _: None)
        monkeypatch.setattr(WireguardTunnel, "_lift", lambda *_: None)
        monkeypatch.setattr(WireguardTunnel, "_number", lambda *_: None)
        monkeypatch.setattr(module, "_index", lambda _: int(self.there))
        monkeypatch.setattr(fence, "Nftables", lambda: self)
        monkeypatch.setattr("husk.network.integrity.look", lambda *_: {})
        monkeypatch.setattr(host, "find", lambda _: None)
        monkeypatch.setattr(host, "remove", lambda interface, owner: self.removed.append(interface))

    def run(self, commands: str) -> str:
        self.ran.append(commands)
        return ""


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Room:
    return Room(monkeypatch)


async def test_a_new_device_gets_a_new_key(room):
    tunnel = WireguardTunnel(SETTINGS)
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
    first = WireguardTunnel(SETTINGS)
    await first.apply(Mesh("fe80::9", (ONE,)), 1440)
    await first.let_go()
    room.device.told.clear()
    second = WireguardTunnel(SETTINGS)
    await second.open()
    public = second.public
    await second.apply(Mesh("fe80::9", (ONE,)), 1440)
    assert room.device.told == [] and public == second.public


async def test_a_program_that_ended_gets_the_same_key_again(room):
    tunnel = WireguardTunnel(SETTINGS)
    await tunnel.apply(Mesh("fe80::9", (ONE,)), 1440)
    public = tunnel.public
    room.device, room.there = FakeDevice(DeviceState()), False
    await tunnel.apply(Mesh("fe80::9", (ONE,)), 1440)
    assert tunnel.public == public and list(room.device.state.parties) == [ONE.key]


async def test_what_is_known_is_told_once(room):
    tunnel = WireguardTunnel(SETTINGS)
    for parties in ((ONE,), (ONE,), ()):
        await tunnel.apply(Mesh("fe80::9", parties), 1440)
    assert room.device.told[1:] == [DeviceChange(parties=(ONE,)), DeviceChange(gone=(ONE.key,))]


async def test_what_could_not_be_told_is_not_taken_for_told(room):
    tunnel = WireguardTunnel(SETTINGS)
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


@pytest.mark.parametrize("step", ["_start", "_configure", "_remove"])
async def test_who_is_cancelled_leaves_nothing_that_goes_on(room: Any, monkeypatch: Any, step: str) -> None:
    tunnel = WireguardTunnel(SETTINGS)
    mesh = Mesh("fe80::9", (ONE,))
    works = {"_start": tunnel.open, "_configure": lambda: tunnel.apply(mesh, 1440), "_remove": tunnel.remove}
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()
    real = getattr(tunnel, step)

    def slow(*given: Any) -> Any:
        begun.set()
        assert may_end.wait(10)
        ended.set()
        return real(*given)

    if step != "_start":
        await tunnel.open()
    monkeypatch.setattr(tunnel, step, slow)
    tasks = Tasks()
    work = tasks.spawn(works[step](), "change", awaited=True)
    await asyncio.to_thread(begun.wait, 10)
    work.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not work.done(), "its thread goes on"
    may_end.set()
    await asyncio.wait([work])
    assert work.cancelled() and ended.is_set()
    # What was done is known: the device is watched, and can be ended.
    assert (tunnel.public is None) is (step == "_remove")
    await tunnel.remove()
    assert room.device.ended


async def test_one_that_is_removed_forgets_its_key(room):
    tunnel = WireguardTunnel(SETTINGS)
    await tunnel.open()
    before, old = tunnel.public, room.device
    await tunnel.remove()
    assert old.ended and room.removed == ["wg-test"] and tunnel.public is None
    room.device = FakeDevice(DeviceState())
    await tunnel.open()
    assert tunnel.public != before


async def test_rules_and_socket_go_though_the_interface_is_gone(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "_SOCKETS", tmp_path)
    room.there = False
    for remove in (WireguardTunnel(SETTINGS).remove, partial(asyncio.to_thread, remove_left, SETTINGS)):
        (tmp_path / "wg-test.sock").touch()
        room.ran.clear()
        await remove()
        assert room.ran == [rules.removal("husk-wg")] and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [(errno.EADDRINUSE, Unavailable, "--wireguard-port"), (errno.EIO, SystemFault, "cannot be set up")],
)
async def test_what_cannot_be_had_leaves_nothing(room: Any, error: int, kind: type[Exception], words: str) -> None:
    room.device.fails = OSError(error, "no")
    tunnel = WireguardTunnel(SETTINGS)
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
async def test_somebody_elses_interface_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, link: Link) -> None:
    def never(*given: object) -> None:
        raise AssertionError("it is not ours")

    monkeypatch.setattr(host, "find", lambda _: link)
    monkeypatch.setattr(host, "remove", lambda *_: None)  # it looks for the mark itself
    monkeypatch.setattr(fence, "Nftables", FakeRules)
    monkeypatch.setattr(WireguardTunnel, "_mark", never)
    monkeypatch.setattr(module, "Module", never)
    monkeypatch.setattr(module, "Program", never)
    tunnel = WireguardTunnel(SETTINGS)
    with pytest.raises(Unavailable, match=r"has an interface wg-test, .* somebody else made it"):
        await tunnel.open()
    assert tunnel.public is None
    await tunnel.remove()
    await asyncio.to_thread(remove_left, SETTINGS)


def test_one_that_a_killed_daemon_could_not_mark_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    link = Link(7, "wg-test", "tun", 0, False, 1500, "")
    begun: list[str] = []

    class Started:
        def __init__(self, interface: str) -> None:
            self.interface = interface

        def start(self) -> None:
            begun.append(self.interface)

    monkeypatch.setattr(host, "find", lambda _: link)
    monkeypatch.setattr(module, "Program", Started)
    assert isinstance(WireguardTunnel(SETTINGS)._make(), Started) and begun == ["wg-test"]


class FakeRules:
    def run(self, commands: str) -> str:
        return ""
