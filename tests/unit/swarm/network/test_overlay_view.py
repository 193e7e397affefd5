"""News to a host about one network, address by address."""

from husk.engine.networks.sharing import Place
from husk.network.peers import OverlayPeer
from husk.swarm.network.overlay_view import OverlayView


def place(address: str, *names: str, kind: str = "endpoint") -> Place:
    return Place(network="lan", address=address, node="n2", kind=kind, names=names)  # type: ignore[arg-type]


def shown(view: OverlayView) -> dict[str, list[str]]:
    return {name: [str(address) for address in found.values()] for name, found in view.names.items()}


def test_an_address_has_its_peer_its_names_and_the_address_it_answers_to() -> None:
    view = OverlayView(("10.0.9.2", "fd00::2"))
    view.note(place("10.0.9.5", "Web", "web", "c5"), "m5", "192.0.2.2", told=True)
    view.note(place("fd00::5", "web"), "m5", "192.0.2.2", told=True)
    view.note(place("10.0.9.6", "web", kind="host"), "m6", "192.0.2.2", told=False)
    assert view.peers["10.0.9.5"] == OverlayPeer("10.0.9.5", "m5", "192.0.2.2") and len(view.peers) == 3
    assert list(view.sources.values()) == [("10.0.9.5", "10.0.9.2"), ("fd00::5", "fd00::2")]
    assert shown(view) == {"web": ["10.0.9.5", "fd00::5"], "c5": ["10.0.9.5"]}


def test_what_is_the_same_stays_the_same_object_in_its_place() -> None:
    view = OverlayView(("10.0.9.2",))
    for number in (5, 6):
        view.note(place(f"10.0.9.{number}", "web"), "m", "192.0.2.2", told=True)
    before = [*view.peers.values(), *view.sources.values()]
    view.note(place("10.0.9.5", "web"), "m", "192.0.2.2", told=True)
    assert all(one is other for one, other in zip(before, (*view.peers.values(), *view.sources.values()), strict=True))


def test_what_is_no_more() -> None:
    view = OverlayView(("10.0.9.2",))
    view.note(place("10.0.9.5", "web", "a"), "m", "192.0.2.2", told=True)
    view.note(place("10.0.9.6", "web"), "m", "192.0.2.2", told=True)
    view.note(place("10.0.9.5", "b"), "m", "", told=True)
    assert shown(view) == {"web": ["10.0.9.6"], "b": ["10.0.9.5"]} and list(view.peers) == ["10.0.9.6"]
    view.note(place("10.0.9.5", "b"), "m", "", told=False)
    view.forget("10.0.9.6")
    view.forget("10.0.9.7")
    assert (shown(view), view.peers, list(view.sources)) == ({}, {}, ["10.0.9.5"])
