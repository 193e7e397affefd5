import pytest

from husk.errors import InvalidParameter, Unavailable
from husk.swarm.membership.joining import ENTRANCE, check
from husk.swarm.model.node import NodeDescription
from husk.swarm.model.settings import JoinSettings
from husk.text.endpoints import HostPort
from tests.support.free_ports import free_port

GOOD = JoinSettings(["192.0.2.1"], "SWMTKN-1-" + "0" * 50 + "-" + "0" * 25, "0.0.0.0:2377")


def test_addresses_have_the_usual_port() -> None:
    remotes = check(GOOD._replace(remotes=["192.0.2.1", "tcp://[2001:db8::1]:5", "manager:6"], availability="Drain"))
    assert remotes == (HostPort("192.0.2.1", 2377), HostPort("2001:db8::1", 5), HostPort("manager", 6))


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (GOOD._replace(listen=""), 'invalid ListenAddr "": invalid empty address'),
        (GOOD._replace(remotes=[]), "at least 1 RemoteAddr is required to join"),
        (GOOD._replace(remotes=[""]), 'invalid remoteAddr "": invalid empty address'),
        (GOOD._replace(remotes=["a:b"]), 'invalid remoteAddr "a:b": '),
        (GOOD._replace(availability="foo"), 'invalid Availability: "foo"'),
        (GOOD._replace(token=""), "A valid join token is necessary to join this cluster"),
    ],
)
def test_what_cannot_be(wish: JoinSettings, said: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        check(wish)
    assert said in refused.value.message


async def test_where_nobody_can_listen() -> None:
    with pytest.raises(InvalidParameter, match="listen address must be"):
        await ENTRANCE.join(GOOD._replace(listen="no-such-interface"), NodeDescription(hostname="beta"))


async def test_a_manager_that_is_not_there() -> None:
    with pytest.raises(Unavailable, match="connection refused"):
        await ENTRANCE.join(GOOD._replace(remotes=[f"127.0.0.1:{free_port()}"]), NodeDescription(hostname="beta"))
