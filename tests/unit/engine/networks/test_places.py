from typing import cast

import pytest

from husk.engine.model.container_config import EndpointRequest
from husk.engine.model.network import Network
from husk.engine.networks.live import LiveNetwork, Roster
from husk.engine.networks.places import one_more, places
from husk.errors import HuskError, InvalidParameter
from husk.network.bridge import BridgeDriver
from tests.unit.engine.records import container


class _Bridge:
    """Stands for a driver: only that there is one is asked."""


@pytest.fixture
def roster() -> Roster:
    found = Roster()
    for number, (name, driver) in enumerate(
        (("bridge", "bridge"), ("host", "host"), ("none", "null"), ("lan", "bridge"))
    ):
        record = Network(id=f"{number}" * 64, name=name, driver=driver, created="", subnet="10.1.0.0/24")
        bridge = cast(BridgeDriver, _Bridge()) if driver == "bridge" else None
        found.by_name[name] = LiveNetwork(record, bridge)
    return found


def test_where_a_container_is_that_names_nothing(roster: Roster) -> None:
    assert list(places(roster, "", {"bridge": EndpointRequest()}, [])) == ["bridge"]
    assert list(places(roster, "default", {}, [])) == ["bridge"]
    assert places(roster, "container:x", {}, []) == {}


def test_named_networks_are_meant_instead_of_the_default_one(roster: Roster) -> None:
    lan = roster.by_name["lan"].record
    assert list(places(roster, "default", {"lan": EndpointRequest()}, [])) == ["lan"]
    found = places(roster, lan.id, {"lan": EndpointRequest(aliases=["a"])}, [])
    assert found["lan"].request.aliases == ["a"] and found["lan"].network_id == lan.id
    twice = {"lan": EndpointRequest(aliases=["a"]), lan.id: EndpointRequest(aliases=["b"])}
    with pytest.raises(InvalidParameter, match="cannot be connected to network lan twice"):
        places(roster, "lan", twice, [])


def test_links_are_names_on_a_network_that_somebody_made(roster: Roster) -> None:
    assert places(roster, "lan", {}, ["db:database"])["lan"].request.links == ["db:database"]
    assert not places(roster, "bridge", {"bridge": EndpointRequest()}, ["db"])["bridge"].request.links


def test_a_network_that_is_not_there_is_told_at_start(roster: Roster) -> None:
    assert places(roster, "nowhere", {}, [])["nowhere"].network_id == ""


@pytest.mark.parametrize("alone", ["host", "none"])
def test_host_and_none_are_alone(roster: Roster, alone: str) -> None:
    with pytest.raises(InvalidParameter, match=f"cannot be connected to network {alone} and to others"):
        places(roster, alone, {"lan": EndpointRequest()}, [])


def test_one_more_network_for_a_container(roster: Roster) -> None:
    endpoint = one_more(roster.by_name["lan"], container("box"), EndpointRequest())
    assert (endpoint.network_name, endpoint.added) == ("lan", True)
    with pytest.raises(HuskError):
        one_more(roster.by_name["host"], container("box"), EndpointRequest())
