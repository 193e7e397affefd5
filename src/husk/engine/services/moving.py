"""The move of a swarm's records from this host's SQLite file into a store that several hosts share.

    async with records.still():                       # writes wait; tasks run on
        await copy(embedded, etcd)                    # all records, that of the swarm last
        …                                             # write down where the records are now
        records.switch(etcd, await everything(etcd))

The record of the swarm is the mark: where it is, the copy is whole; where it is not, whatever is there was left by a
crash and is removed first. So a crash at any point starts over, or finds that nothing is left to do.
"""

from collections.abc import Iterable, Iterator

import msgspec

from husk.cluster.records import NEW, Delete, News, Put, Record, version_in
from husk.engine.services.cluster_store import ClusterStore
from husk.engine.services.records import READERS
from husk.engine.services.swarm import KEY, read_swarm
from husk.errors import Conflict, HuskError

SWARM = "swarm"
# etcd takes 128 steps in a transaction and 1.5 MiB in a request; a config alone may have 1.3 MB.
MOST_STEPS, MOST_BYTES = 100, 512 * 1024


async def copy(source: ClusterStore, target: ClusterStore) -> int:
    """Bring all records of the swarm over; how many there are. Conflict where another swarm is there."""
    (swarm,) = (await source.listing(SWARM)).records
    there = await target.get(SWARM, KEY)
    if there is not None:
        if read_swarm(there.body).id != read_swarm(swarm.body).id:
            raise Conflict("the cluster store holds the records of another swarm: use one that is empty")
        return sum([len((await target.listing(kind)).records) for kind in READERS])
    kinds = [kind for kind in READERS if kind != SWARM]
    for kind in kinds:
        left = (await target.listing(kind)).records
        for some in _batches(left):
            await target.commit(*(Delete(record.kind, record.key) for record in some))
    count = 1
    for kind in kinds:
        found = (await source.listing(kind)).records
        for some in _batches(record for record in found if _readable(record)):
            await target.commit(*(Put(record.kind, record.key, record.body, NEW) for record in some))
            count += len(some)
    await target.commit(Put(SWARM, KEY, swarm.body, NEW))
    return count


async def drop(source: ClusterStore) -> None:
    """Remove the copies that stayed behind; safe to call twice."""
    for kind in READERS:
        for some in _batches((await source.listing(kind)).records):
            await source.commit(*(Delete(record.kind, record.key) for record in some), happened=True)


async def everything(store: ClusterStore) -> News:
    """All records of the swarm that a store has."""
    listings = [await store.listing(kind) for kind in READERS]
    records = tuple(record for listing in listings for record in listing.records)
    return News(max(listing.revision for listing in listings), True, records)


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """As many records as one transaction takes."""
    some: list[Record] = []
    size = 0
    for record in records:
        if some and (len(some) == MOST_STEPS or size + len(record.body) > MOST_BYTES):
            yield some
            some, size = [], 0
        some.append(record)
        size += len(record.body)
    if some:
        yield some


def _readable(record: Record) -> bool:
    """What is no record at all stays where it is."""
    try:
        version_in(record.body)
        READERS[record.kind](record.body)
    except (msgspec.MsgspecError, HuskError, UnicodeDecodeError):
        return False
    return True
