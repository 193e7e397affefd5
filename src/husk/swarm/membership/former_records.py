"""Records of a swarm as release 0.1 wrote them, brought into their present form.

Up to then the record of the swarm, under its id, held the node too; it had no CA, and tokens that nobody asked for,
which were never sealed.
"""

import asyncio
import time

import msgspec
from msgspec import Struct, field

from husk.storage.secrets.sealing import Sealer
from husk.swarm.ca import roots
from husk.swarm.membership import join_tokens
from husk.swarm.model.node import Node, NodeStatus, manager_at
from husk.swarm.model.settings import CAConfig, NodeSpec
from husk.swarm.model.swarm import KIND, Swarm
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.transactions import NEW, Delete
from husk.text.gojson import Reader, parse_document


class _FormerSwarm(Struct, kw_only=True):
    """The part of a swarm's record that described its one node, up to release 0.1."""

    node_id: str = ""
    node_updated_at: str = ""
    node_spec: NodeSpec = field(default_factory=NodeSpec)
    advertise_address: str = ""
    created_at: str = ""


_former = Reader(_FormerSwarm)


async def node_of(store: SwarmRecords) -> Node | None:
    """The node that such a record has in it."""
    for record in (await store.store.listing(KIND)).records:
        if (node := _node_in(record.body)) is not None:
            return msgspec.structs.replace(node, manager=manager_at(node.status.addr))
    return None


async def bring_up(store: SwarmRecords, swarm: Swarm, node: Node) -> None:
    """Write the swarm and its node as records of their own instead."""
    former = (await store.store.listing(KIND)).records
    anew = msgspec.structs.replace(swarm, version=NEW)
    await store.settle(anew, node, checks=tuple(Delete(KIND, record.key) for record in former))
    for record in former:
        store.swarms.pop(record.key, None)


async def with_trust(store: SwarmRecords, sealer: Sealer) -> None:
    """Give a swarm that has none a CA, and tokens that name it."""
    swarm = store.swarm
    if swarm is None or swarm.trust is not None:
        return
    trust = await asyncio.to_thread(roots.first, CAConfig(), sealer, time.time())

    def change(swarm: Swarm) -> Swarm:
        return join_tokens.fitting(roots.with_tokens(msgspec.structs.replace(swarm, trust=trust)), sealer)

    await store.amend(swarm, change)


async def with_sealed_tokens(store: SwarmRecords, sealer: Sealer) -> None:
    """Seal the tokens of a swarm with autolock, where they are not."""
    swarm = store.swarm
    if swarm is not None and not join_tokens.fit(swarm):
        await store.amend(swarm, lambda swarm: join_tokens.fitting(swarm, sealer))


def _node_in(body: bytes) -> Node | None:
    """The node that an old record of a swarm has in it."""
    found = _former.read(parse_document(body))
    if not found.node_id:
        return None
    return Node(
        id=found.node_id,
        version=0,
        created_at=found.created_at,
        updated_at=found.node_updated_at,
        spec=found.node_spec,
        status=NodeStatus(state="ready", addr=found.advertise_address),
    )
