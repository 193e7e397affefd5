"""The cluster store of several hosts: records in etcd.

    store = EtcdStore.open("etcd://10.0.0.1,10.0.0.2,10.0.0.3", Certificates(ca, cert, key))
    …
    await store.close()

What is said to have been written is on the disks of most members. A transaction whose answer was lost is tried again;
where it had been done the first time, that is seen by what is there.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Self

from husk.config.etcd_address import read_address
from husk.errors import InvalidParameter
from husk.rpc.grpc.status import OUT_OF_RANGE, RESOURCE_EXHAUSTED, GrpcError
from husk.swarm.state.etcd.certificates import CertificateFiles, tls_context
from husk.swarm.state.etcd.channel import PATIENCE, EtcdChannel, StoreFull, refusal
from husk.swarm.state.etcd.lease import EtcdLease
from husk.swarm.state.etcd.messages import (
    GRANT,
    RANGE,
    STATUS,
    TXN,
    KeyValue,
    LeaseGrantRequest,
    LeaseGrantResponse,
    RangeRequest,
    RangeResponse,
    StatusRequest,
    StatusResponse,
    TxnResponse,
)
from husk.swarm.state.etcd.translate import (
    done_before,
    found_instead,
    key_of,
    range_of,
    record_of,
    stale_names,
    transaction,
)
from husk.swarm.state.etcd.watch import watch
from husk.swarm.state.transactions import ClusterRecord, Listing, News, Stale, Step, check_name, check_steps
from husk.text.endpoints import HostPort

# Records that are asked for at once; fewer where they are too large for one message.
PAGE = 512


class EtcdStore:
    def __init__(self, channel: EtcdChannel) -> None:
        self._channel = channel
        self._leases: set[EtcdLease] = set()
        # Called when etcd refuses a change because it is full.
        self.full: Callable[[], None] = lambda: None

    @classmethod
    def open(cls, address: str, certificates: CertificateFiles | None = None, patience: float = PATIENCE) -> Self:
        """Nobody is asked yet. InvalidParameter for an address or certificates that cannot be used. Blocks."""
        tls = tls_context(certificates) if certificates is not None else None
        return cls(EtcdChannel(read_address(address), tls, patience))

    @classmethod
    def shut(cls, address: str, reason: str) -> Self:
        """Our certificates cannot be used yet: nobody is asked before `renew`. InvalidParameter for an address."""
        return cls(EtcdChannel(read_address(address), None, shut=reason))

    def know(self, endpoints: Sequence[HostPort]) -> None:
        """Take these as the members that can be asked from now on: at least one."""
        self._channel.know(endpoints)

    async def renew(self, certificates: CertificateFiles) -> None:
        """Show these from the next connection on. InvalidParameter for what cannot be used."""
        self._channel.trust(await asyncio.to_thread(tls_context, certificates))

    async def status(self) -> StatusResponse:
        """Return the status of the member that answers, in its own words."""
        return StatusResponse.decode((await self._ask(STATUS, StatusRequest().encode()))[0])

    async def get(self, kind: str, key: str) -> ClusterRecord | None:
        check_name(kind, key)
        answer = await self._range(RangeRequest(key=key_of(kind, key)))
        return record_of(answer.kvs[0]) if answer.kvs else None

    async def listing(self, kind: str) -> Listing:
        while True:
            try:
                pairs, revision = await self._all(kind)
            except GrpcError as error:
                if error.code != OUT_OF_RANGE:
                    raise refusal(error) from None
                # Compacted between two pages: what is there now will do as well.
                continue
            return Listing(tuple(map(record_of, pairs)), revision)

    async def snapshot(self, kinds: Collection[str]) -> Listing:
        found = await self.listing("")
        return Listing(tuple(record for record in found.records if record.kind in kinds), found.revision)

    async def _all(self, kind: str) -> tuple[list[KeyValue], int]:
        """Page by page, all as they were with the first."""
        first, behind = range_of(kind)
        found: list[KeyValue] = []
        revision, page = 0, PAGE
        while True:
            request = RangeRequest(key=first, range_end=behind, limit=page, revision=revision)
            try:
                answer = RangeResponse.decode((await self._channel.unary(RANGE, request.encode()))[0])
            except GrpcError as error:
                if error.code != RESOURCE_EXHAUSTED or page == 1:
                    raise
                page = max(page // 4, 1)
                continue
            revision = revision or (answer.header.revision if answer.header is not None else 0)
            found += answer.kvs
            if not answer.more or not answer.kvs:
                return found, revision
            first = answer.kvs[-1].key + b"\0"

    async def commit(
        self, *steps: Step, applied: Callable[[int], None] | None = None, happened: bool = False, lazy: bool = False
    ) -> int:
        check_steps(steps)
        message, heard = await self._ask(TXN, transaction(steps).encode())
        answer = TxnResponse.decode(message)
        revision = answer.header.revision if answer.header is not None else 0
        if not answer.succeeded:
            found = found_instead(answer)
            if not heard or not (revision := done_before(steps, found)):
                raise Stale(stale_names(steps, found))
        if applied is not None:
            applied(revision)
        return revision

    def watch(self, kind: str = "", after: int = 0) -> AsyncIterator[News]:
        return watch(self._channel, kind, after, self.listing)

    async def lease(self, seconds: int) -> EtcdLease:
        asked = asyncio.get_running_loop().time()
        message, _ = await self._ask(GRANT, LeaseGrantRequest(ttl=seconds).encode())
        granted = LeaseGrantResponse.decode(message)
        if granted.error:
            raise InvalidParameter(f"etcd gives no lease: {granted.error}")
        lease = EtcdLease(self._channel, granted.id, granted.ttl, asked, self._leases.discard)
        self._leases.add(lease)
        return lease

    async def close(self) -> None:
        for lease in list(self._leases):
            await lease.close()
        await self._channel.close()

    async def _range(self, request: RangeRequest) -> RangeResponse:
        return RangeResponse.decode((await self._ask(RANGE, request.encode()))[0])

    async def _ask(self, path: str, message: bytes) -> tuple[bytes, bool]:
        try:
            return await self._channel.unary(path, message)
        except GrpcError as error:
            told = refusal(error)
            if isinstance(told, StoreFull):
                self.full()
            raise told from None
