"""A new node and a manager on the loopback."""

import pytest

from husk.errors import Conflict, InvalidParameter, SystemFault, Unavailable
from husk.swarm.ca import authority
from husk.swarm.ca.holders import Holder
from husk.swarm.ca.identity import joining_context
from husk.swarm.ca.tokens import new_token
from husk.swarm.port.crowding import BURST
from husk.swarm.port.faults import TooMany
from husk.swarm.port.join import join
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import JOIN, ROOT, CertificateReply, JoinRequest, RootReply, RootRequest
from husk.swarm.port.peers import Peer
from husk.swarm.port.protocol import OWN, ProtocolVersion
from husk.swarm.port.server import ClusterPort
from husk.text.endpoints import HostPort
from tests.support.cluster_port import PortedSwarm
from tests.support.free_ports import free_port


def asking(token: str) -> JoinRequest:
    return JoinRequest(token=token, hostname="second", availability="active")


async def test_the_token_decides_the_role(swarm: PortedSwarm, port: ClusterPort) -> None:
    worker = await join([swarm.endpoint], asking(swarm.tokens().worker))
    manager = await join([swarm.endpoint], asking(swarm.tokens().manager))
    assert worker.holder == Holder("n1", "worker", swarm.swarm)
    assert manager.holder == Holder("n2", "manager", swarm.swarm)
    assert swarm.roles == {"first": "manager", "n1": "worker", "n2": "manager"}
    assert worker.managers == (swarm.endpoint,) and worker.identity.roots == swarm.root()
    assert authority.fits(worker.identity.certificate, worker.identity.key)
    request, address = swarm.asked[0]
    assert (request.hostname, address) == ("second", "127.0.0.1")


async def test_the_next_manager_is_asked_when_one_is_away(swarm: PortedSwarm, port: ClusterPort) -> None:
    away = HostPort("127.0.0.1", free_port())
    assert (await join([away, swarm.endpoint], asking(swarm.tokens().worker))).holder.node == "n1"


async def test_nobody_there(swarm: PortedSwarm) -> None:
    away = HostPort("127.0.0.1", free_port())
    with pytest.raises(Unavailable) as told:
        await join([away], asking(swarm.tokens().worker))
    assert told.value.message == (
        'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp '
        f'{away}: connect: connection refused"'
    )


async def test_wrong_tokens_are_refused_and_soon_not_even_looked_at(
    swarm: PortedSwarm, port: ClusterPort, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = new_token(swarm.root())
    for _ in range(BURST):
        with pytest.raises(InvalidParameter, match="A valid join token is necessary to join this cluster"):
            await join([swarm.endpoint], asking(wrong))
    with pytest.raises(TooMany, match="wrong join tokens"):
        await join([swarm.endpoint], asking(wrong))
    with pytest.raises(TooMany):
        await join([swarm.endpoint], asking(swarm.tokens().worker))
    assert list(swarm.roles) == ["first"]
    assert caplog.text.count("127.0.0.1 tried to join the swarm with a wrong token") == BURST


async def test_a_token_of_another_swarm_is_never_shown_to_this_one(swarm: PortedSwarm, port: ClusterPort) -> None:
    other = PortedSwarm()
    token = other.tokens().worker
    with pytest.raises(SystemFault, match=r"remote CA does not match fingerprint. Expected: [0-9a-f]{64}"):
        await join([swarm.endpoint], asking(token))
    assert not swarm.asked
    with pytest.raises(InvalidParameter, match="invalid join token"):
        await join([swarm.endpoint], asking("x"))


async def test_a_manager_that_only_pretends_to_be_one(swarm: PortedSwarm) -> None:
    """It knows the root certificate, which everybody may know, and has a key of its own."""
    liar = PortedSwarm()
    liar.root = swarm.root  # type: ignore[method-assign]
    async with liar.opened():
        with pytest.raises(Unavailable, match="certificate is not to be trusted"):
            await join([liar.endpoint], asking(swarm.tokens().worker))
    assert not liar.asked, "the token was not given away"


async def test_a_worker_that_pretends_to_be_a_manager(swarm: PortedSwarm, port: ClusterPort) -> None:
    port.use(swarm.identity("n1", "worker"))
    with pytest.raises(Unavailable, match="certificate is not to be trusted"):
        await join([swarm.endpoint], asking(swarm.tokens().worker))


async def test_certificates_that_are_not_ours(swarm: PortedSwarm, port: ClusterPort) -> None:
    replies = [
        (CertificateReply(certificate=b"x", roots=swarm.root()), "cannot be read"),
        (CertificateReply(certificate=swarm.identity("n1", "worker").certificate), "is not ours"),
    ]

    async def admit(role: str, request: JoinRequest, address: str) -> CertificateReply:
        return replies[0][0]

    swarm.admit = admit  # type: ignore[method-assign]
    while replies:
        with pytest.raises(SystemFault, match=replies[0][1]):
            await join([swarm.endpoint], asking(swarm.tokens().worker))
        replies.pop(0)


async def test_who_does_not_answer_is_given_up(swarm: PortedSwarm, port: ClusterPort) -> None:
    async def admit(role: str, request: JoinRequest, address: str) -> CertificateReply:
        await swarm.changed()
        raise AssertionError

    swarm.admit = admit  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="Timeout was reached before node joined"):
        await join([swarm.endpoint], asking(swarm.tokens().worker), patience=0.5)


async def test_both_sides_tell_what_they_speak(swarm: PortedSwarm, port: ClusterPort) -> None:
    await join([swarm.endpoint], asking(swarm.tokens().worker))
    request, _ = swarm.asked[0]
    assert (request.protocol, request.release) == OWN


async def test_a_node_of_a_release_that_is_too_far_away_does_not_show_its_token(
    swarm: PortedSwarm, port: ClusterPort
) -> None:
    async def root(peer: Peer, request: RootRequest) -> RootReply:
        return RootReply(certificate=swarm.root(), protocol=OWN.version + 2, release="9.9")

    del port._methods[ROOT]
    port.register_unary(ROOT, RootRequest, root, access="anybody")
    with pytest.raises(Conflict, match=r"the manager \(Husk 9.9\) version 3, which are too far apart"):
        await join([swarm.endpoint], asking(swarm.tokens().worker))
    assert not swarm.asked


async def test_a_manager_refuses_a_node_that_is_too_far_away(swarm: PortedSwarm, port: ClusterPort) -> None:
    asked = asking(swarm.tokens().worker)
    asked.protocol, asked.release = OWN.version + 2, "9.9"
    managers = Managers([swarm.endpoint], joining_context(swarm.root()))
    try:
        with pytest.raises(Conflict, match=r"this node \(Husk 9.9\) speaks version 3"):
            await managers.unary(JOIN, asked, CertificateReply)
    finally:
        await managers.close()
    assert list(swarm.roles) == ["first"]


@pytest.mark.parametrize("spoken", [ProtocolVersion(0, ""), ProtocolVersion(OWN.version + 1, "9.8")])
async def test_neighbours_are_let_in(swarm: PortedSwarm, port: ClusterPort, spoken: ProtocolVersion) -> None:
    asked = asking(swarm.tokens().worker)
    _, asked.request = authority.new_request()
    asked.protocol, asked.release = spoken
    managers = Managers([swarm.endpoint], joining_context(swarm.root()))
    try:
        assert (await managers.unary(JOIN, asked, CertificateReply)).certificate
    finally:
        await managers.close()
    assert swarm.roles["n1"] == "worker"
