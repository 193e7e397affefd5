"""Renewal, promotion and a new root, as a node lives through them."""

import asyncio
import time

import pytest

from husk.errors import InvalidParameter
from husk.swarm.ca import authority
from husk.swarm.ca.identity import Identity
from husk.swarm.ca.tokens import root_digest
from husk.swarm.port import certificates
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import (
    FOLLOW,
    RENEW,
    CertificateReply,
    FollowReply,
    FollowRequest,
    RenewRequest,
)
from husk.swarm.port.server import ClusterPort
from tests.support.cluster_port import PortedSwarm


async def renewed(managers: Managers) -> Identity:
    key, request = authority.new_request()
    reply = await managers.unary(RENEW, RenewRequest(request=request), CertificateReply)
    return Identity(reply.roots, reply.certificate, key)


async def test_a_node_gets_the_role_that_it_has_now(swarm: PortedSwarm, port: ClusterPort) -> None:
    swarm.roles["w"] = "worker"
    managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
    following = asyncio.gather(managers.unary(FOLLOW, FollowRequest(roots=root_digest(swarm.roots)), FollowReply))
    await asyncio.sleep(0)
    swarm.roles["w"] = "manager"
    swarm.change()
    (told,) = await following
    assert told.renew and told.managers == [str(swarm.endpoint)]
    holder = authority.look((await renewed(managers)).certificate).holder
    assert holder is not None and (holder.node, holder.role) == ("w", "manager")
    with pytest.raises(InvalidParameter):
        await managers.unary(RENEW, RenewRequest(request=b"x"), CertificateReply)
    await managers.close()


async def test_nodes_come_over_to_a_new_root(swarm: PortedSwarm, port: ClusterPort) -> None:
    """One after the other, and at each step all of them understand each other."""
    swarm.roles |= {"w": "worker", "late": "worker"}
    before = swarm.identity("w", "worker")
    managers = Managers([swarm.endpoint], before)
    late = Managers([swarm.endpoint], swarm.identity("late", "worker"))
    swarm.next = authority.new_root(time.time())
    told = await managers.unary(FOLLOW, FollowRequest(roots=root_digest(before.roots)), FollowReply)
    assert told.roots == swarm.roots
    after = await renewed(managers)
    assert authority.signed_by(after.certificate, [swarm.next.certificate])
    await managers.use(after)
    await renewed(managers)  # the manager has a certificate of the old root still
    manager_key, request = authority.new_request()
    reply = await swarm.renew("first", request)
    port.use(Identity(reply.roots, reply.certificate, manager_key))
    await managers.use(after)
    await renewed(managers)
    await renewed(late)  # who believes in the old root only
    swarm.now, swarm.next = swarm.next, None
    port.use(Identity(swarm.roots, reply.certificate, manager_key))
    await managers.use(after._replace(roots=swarm.roots))
    await renewed(managers)
    for each in (managers, late):
        await each.close()


async def test_without_news_a_node_hears_that_too(
    swarm: PortedSwarm, port: ClusterPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "PATIENCE", 0.05)
    swarm.roles["w"] = "worker"
    managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
    told = await managers.unary(FOLLOW, FollowRequest(roots=root_digest(swarm.roots)), FollowReply)
    assert not told.renew and told.roots == swarm.roots
    await managers.close()
