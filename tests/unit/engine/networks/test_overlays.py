"""What the driver of overlay networks is asked for, and in which order. The driver and the kernel are doubles."""

from typing import Any, cast

import pytest

from husk.engine.model.network import MTU, Network
from husk.engine.networks.live import LiveNetwork, Roster
from husk.engine.networks.overlays import Overlays, Underlay, Way, encrypted, interface_of
from husk.errors import SystemFault
from husk.network import encryption, host, overlay
from husk.network.encryption import Party
from husk.network.peers import Peer

UNDERLAY = Underlay(Party("192.0.2.1", 1), 4789, (Party("192.0.2.2", 1),), (b"k" * 32,))
PEERS = (Peer("10.0.9.6", "02:42:0a:00:09:06", "192.0.2.2"),)
WAY = Way(4097, "10.0.9.254", PEERS)


class Driver:
    """A network's bridge."""

    def __init__(self, name: str, done: list[Any]) -> None:
        self.interface = name
        self.done = done

    async def fit(self, mtu: int) -> None:
        self.done.append(("fit", mtu))


@pytest.fixture
def broken() -> set[str]:
    """Interfaces that the host refuses."""
    return set()


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch, broken: set[str]) -> list[Any]:
    """What was asked for."""
    found: list[Any] = []

    class Double:
        def __init__(self, settings: overlay.OverlaySettings) -> None:
            self.settings = settings
            self.is_there = True

        @classmethod
        async def open(cls, settings: overlay.OverlaySettings) -> "Double":
            if settings.interface in broken:
                raise SystemFault(f"{settings.interface} cannot be set up")
            found.append(("open", settings.interface, settings.port, settings.mtu))
            return cls(settings)

        async def tell(self, peers: tuple[Peer, ...]) -> int:
            found.append(("tell", self.settings.interface, len(peers)))
            return 1

        def mend(self) -> None:
            if self.settings.interface in broken:
                raise SystemFault("its bridge is not there")
            found.append(("mend", self.settings.interface))

        async def close(self, remove: bool) -> None:
            if self.settings.interface in broken:
                raise OSError("busy")
            found.append(("close", self.settings.interface, remove))

    monkeypatch.setattr(overlay, "Overlay", Double)
    monkeypatch.setattr(overlay, "underlay_mtu", lambda _: 1500)
    monkeypatch.setattr(encryption, "apply", lambda *given: found.append(("encrypt", *given[2:])))
    monkeypatch.setattr(encryption, "remove", lambda port: found.append(("decrypt", port)))
    monkeypatch.setattr(host, "remove", lambda interface, owner: found.append(("remove", interface, owner)))
    return found


def overlays(done: list[Any], **networks: dict[str, str]) -> Overlays:
    roster = Roster()
    for name, options in networks.items():
        record = Network(id=name.ljust(64, "0"), name=name, driver="overlay", created="", options=options)
        roster.by_name[name] = LiveNetwork(record, Driver("br-" + name, done))  # type: ignore[arg-type]
    return Overlays(roster, "husk")


def id_of(name: str) -> str:
    return name.ljust(64, "0")


async def test_a_network_is_opened_once_and_told_what_is_new(done):
    networks = overlays(done, a={})
    for way in (WAY, WAY, Way(WAY.vni, WAY.own, ())):
        await networks.apply(UNDERLAY, {id_of("a"): way, id_of("elsewhere"): way})
    name = "vx-a00000000000"
    # Of what an earlier daemon may have encrypted nothing is needed.
    first = [("fit", 1450), ("open", name, 4789, 1450), ("tell", name, 1), ("decrypt", 4790)]
    assert done == [*first, ("tell", name, 0)]


async def test_a_network_that_no_longer_leads_elsewhere_is_closed(done):
    networks = overlays(done, a={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    await networks.apply(UNDERLAY, {})
    assert done[-1] == ("close", "vx-a00000000000", True)
    done.clear()
    networks.mend()
    assert done == []


async def test_a_network_that_is_refused_keeps_no_other_from_its_way(done, broken):
    networks = overlays(done, a={}, b={})
    ways = {id_of("a"): WAY, id_of("b"): WAY}
    broken.add("vx-a00000000000")
    with pytest.raises(SystemFault, match="vx-a00000000000 cannot be set up"):
        await networks.apply(UNDERLAY, ways)
    assert ("tell", "vx-b00000000000", 1) in done
    broken.clear()
    await networks.apply(UNDERLAY, ways)
    assert ("tell", "vx-a00000000000", 1) in done


async def test_an_interface_that_does_not_go_is_not_forgotten(done, broken):
    networks = overlays(done, a={"encrypted": ""}, b={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    broken.add("vx-a00000000000")
    with pytest.raises(OSError, match="busy"):
        await networks.apply(UNDERLAY, {id_of("b"): WAY})
    assert ("tell", "vx-b00000000000", 1) in done and ("decrypt", 4790) not in done
    broken.clear()
    await networks.apply(UNDERLAY, {id_of("b"): WAY})
    assert done[-2:] == [("close", "vx-a00000000000", True), ("decrypt", 4790)]


async def test_an_interface_that_somebody_deleted_is_made_again(done):
    networks = overlays(done, a={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    cast(Any, networks._open[id_of("a")]).is_there = False
    done.clear()
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    assert [what[0] for what in done] == ["fit", "open", "tell"]


async def test_a_bridge_that_is_missing_keeps_no_other_from_being_mended(done, broken, caplog):
    networks = overlays(done, a={}, b={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY, id_of("b"): WAY})
    broken.add("vx-a00000000000")
    done.clear()
    networks.mend()
    assert done == [("mend", "vx-b00000000000")] and "its bridge is not there" in caplog.text


async def test_another_number_opens_it_anew(done):
    networks = overlays(done, a={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    await networks.apply(UNDERLAY, {id_of("a"): Way(4098, WAY.own, PEERS)})
    assert [what[0] for what in done].count("open") == 2
    done.clear()
    networks.mend()
    assert done == [("mend", "vx-a00000000000")]


async def test_what_is_encrypted_has_keys_before_it_is_opened_and_loses_them_after_the_last(done):
    networks = overlays(done, a={"encrypted": ""}, b={MTU: "1300"})
    await networks.apply(UNDERLAY, {id_of("a"): WAY, id_of("b"): WAY})
    assert done[0] == ("encrypt", UNDERLAY.keys, 4790)
    assert ("open", "vx-a00000000000", 4790, 1412) in done
    assert ("open", "vx-b00000000000", 4789, 1300) in done
    await networks.apply(UNDERLAY, {id_of("b"): WAY})
    assert ("decrypt", 4790) in done
    assert done.index(("close", "vx-a00000000000", True)) < done.index(("decrypt", 4790))


async def test_another_port_takes_the_policies_of_the_old_one_away(done):
    networks = overlays(done, a={"encrypted": "true"})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    await networks.apply(Underlay(UNDERLAY.local, 5000), {id_of("a"): WAY})
    assert done[-4:] == [
        ("fit", 1412),
        ("open", "vx-a00000000000", 5001, 1412),
        ("tell", "vx-a00000000000", 1),
        ("decrypt", 4790),
    ]
    assert ("encrypt", (), 5001) in done


async def test_a_network_that_ends_takes_its_interface_along_whoever_made_it(done):
    networks = overlays(done, a={})
    [live] = networks._roster.by_name.values()
    await networks.remove(live.record)
    await networks.remove(Network(id="b", name="b", driver="bridge", created=""))
    assert done == [("remove", "vx-a00000000000", "husk")]


@pytest.mark.parametrize(
    ("options", "found"), [({}, False), ({"encrypted": ""}, True), ({"encrypted": "false"}, False)]
)
def test_encryption_is_an_option(options, found):
    network = Network(id="a" * 64, name="a", driver="overlay", created="", options=options)
    assert encrypted(network) is found
    assert len(interface_of(network)) == 15
