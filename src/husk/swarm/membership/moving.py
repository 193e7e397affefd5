"""The move of a swarm's records from this host's SQLite file into a store that several hosts share.

SQLite is the store until it says itself that another one is (`Cluster.note_store`), which is written when the copy is
whole. So a crash before that starts over, whatever is in the other store by then, and one after it has the other store.
Tasks run on meanwhile; whoever wants to write a record waits.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from husk.config import ClusterStoreConfig
from husk.errors import Conflict, HuskError
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.swarm import KEY, read_swarm
from husk.swarm.state import open_store
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.kinds import READERS
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.shared import Shared
from husk.swarm.state.transactions import NEW, Check, ClusterRecord, Delete, News, Put, batches, version_in
from husk.text.documents import MalformedDocument

log = logging.getLogger(__name__)

R = TypeVar("R", ClusterRecord, Put)
OpenStore = Callable[[ClusterStoreConfig], ClusterStore]
SWARM = "swarm"
# Networks that hosts share, and addresses on them, are known by `SharedNetworks` alone.
KINDS = (*READERS, "overlay", "address")


async def move(
    records: SwarmRecords,
    cluster: Cluster,
    where: ClusterStoreConfig,
    others: dict[str, str] | None = None,
    switched: Callable[[News], None] = lambda told: None,
    opener: OpenStore = open_store.open_store,
) -> Shared:
    """Bring a swarm into another store while it runs, and follow that from now on. Raises where it stays as it was.

    `others` where the store is the swarm's own etcd, see `Membership`. `switched` is called before there is news."""
    source, target = records.store, await asyncio.to_thread(opener, where)
    try:
        async with records.still():
            await copy(source, target)
            there = await everything(target)
            await cluster.note_store(where, others)
            records.switch(target, there)
            shared = Shared(records, target)
            switched(there)
    except BaseException:
        await target.close()
        raise
    try:
        await drop(source)
    except HuskError as error:
        # The next start does it. Nothing may fail from here on: the records are there, and not here.
        log.warning("what was moved to the cluster store is still in this host's own: %s", error.message)
    await shared.open(_nothing)
    shared.take_part(cluster.node_id)
    return shared


async def follow(
    records: SwarmRecords,
    where: ClusterStoreConfig,
    switched: Callable[[News], None],
    opener: OpenStore = open_store.open_store,
) -> Shared:
    """Use a store that has the records of a swarm already, in place of one that has none. Raises as `move` does."""
    target = await asyncio.to_thread(opener, where)
    try:
        async with records.still():
            there = await everything(target)
            records.switch(target, there)
            shared = Shared(records, target)
            switched(there)
    except BaseException:
        await target.close()
        raise
    await shared.open(_nothing)
    return shared


async def _nothing() -> None:
    """All is known already."""


async def copy(source: ClusterStore, target: ClusterStore) -> int:
    """Bring all records of the swarm over; how many there are. Conflict where another swarm is there."""
    (swarm,) = (await source.listing(SWARM)).records
    there = await target.get(SWARM, KEY)
    if there is not None and read_swarm(there.body).id != read_swarm(swarm.body).id:
        raise Conflict("the cluster store holds the records of another swarm: use one that is empty")
    # What a crash left of a former copy may be older than ours.
    await drop(target)
    count = 1
    for kind in KINDS:
        found = (await source.listing(kind)).records if kind != SWARM else ()
        for some in in_batches(record for record in found if _readable(record)):
            await target.commit(*(Put(record.kind, record.key, record.body, NEW) for record in some))
            count += len(some)
    await target.commit(Put(SWARM, KEY, swarm.body, NEW))
    return count


async def drop(store: ClusterStore, *, swarm: bool = True) -> None:
    """Remove the records of the swarm from a store; safe to call twice. Without `swarm` there has to be none, only what
    was left of one: Stale where somebody makes one meanwhile."""
    checks = () if swarm else (Check(SWARM, KEY, NEW),)
    for kind in sorted(KINDS if swarm else set(KINDS) - {SWARM}, key=lambda kind: kind != SWARM):
        for some in in_batches(record for record in (await store.listing(kind)).records if _readable(record)):
            await store.commit(*(Delete(record.kind, record.key) for record in some), *checks, happened=True)


async def everything(store: ClusterStore) -> News:
    """All records of the swarm that a store has."""
    listings = [await store.listing(kind) for kind in KINDS]
    records = tuple(record for listing in listings for record in listing.records)
    return News(max(listing.revision for listing in listings), True, records)


def in_batches(records: Iterable[R]) -> Iterator[list[R]]:
    """As many records as one transaction takes."""
    return batches(records, lambda record: len(record.body))


def _readable(record: ClusterRecord) -> bool:
    """Tell if a record can be read; one that cannot stays where it is."""
    try:
        version_in(record.body)
        if record.kind in READERS:
            READERS[record.kind](record.body)
    except (MalformedDocument, HuskError):
        return False
    return True
