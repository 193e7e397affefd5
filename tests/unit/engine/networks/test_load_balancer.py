"""The appearance of a host itself on an overlay network."""

import pytest

from husk.engine.model.network import Network
from husk.engine.networks.load_balancer import load_balancer

OV = Network(
    id="ov-id", name="ov", driver="overlay", created="", scope="swarm", subnet="10.0.1.0/24", gateway="10.0.1.1"
)
INGRESS = Network(
    id="in-id", name="ingress", driver="overlay", created="", subnet="10.0.0.0/24", gateway="10.0.0.1", ingress=True
)
SIX = Network(
    id="six", name="six", driver="overlay", created="", subnet="10.0.2.0/24", gateway="10.0.2.1", subnet6="fd00:2::/64"
)


@pytest.mark.parametrize(
    ("network", "own", "shown"),
    [
        (OV, (), ("lb-ov", "ov-endpoint", "02:42:0a:00:01:01", "10.0.1.1/24", "")),
        (OV, ("10.0.1.7",), ("lb-ov", "ov-endpoint", "02:42:0a:00:01:07", "10.0.1.7/24", "")),
        (INGRESS, (), ("ingress-sbox", "ingress-endpoint", "02:42:0a:00:00:01", "10.0.0.1/24", "")),
        (
            SIX,
            ("10.0.2.9", "fd00:2::9"),
            ("lb-six", "six-endpoint", "02:42:0a:00:02:09", "10.0.2.9/24", "fd00:2::9/64"),
        ),
    ],
)
def test_it_is_called_as_docker_does(network: Network, own: tuple[str, ...], shown: tuple[str, ...]) -> None:
    found = load_balancer(network, own)
    assert found is not None and len(found.endpoint_id) == 64
    assert (found.key, found.name, found.mac_address, found.address, found.address6) == shown


def test_it_is_the_same_each_time_and_another_for_each_network_and_host() -> None:
    ids = [load_balancer(*given) for given in ((OV, ()), (OV, ("10.0.1.7",)), (INGRESS, ()))]
    assert len({one.endpoint_id for one in ids if one is not None}) == 3
    assert load_balancer(OV, ()) == load_balancer(OV, ())


def test_without_any_address_there_is_none() -> None:
    assert load_balancer(Network(id="x", name="x", driver="overlay", created=""), ()) is None
