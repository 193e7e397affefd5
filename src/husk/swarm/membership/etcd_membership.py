"""The swarm's own etcd: a member on each manager, below its data root, that belongs to the manager as its records do.

It begins with the first manager that joins, or is promoted: see `begin`. A new manager is given a certificate for it
(`enter`), and brings its own member (`join`). While a manager stays one, its member is kept running; when it leaves or
is demoted the member goes. With an etcd that exists (`--cluster-store`) nothing of this is done.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec

from husk.aio.tasks import Tasks
from husk.config import ETCD_PORTS, ClusterStoreConfig
from husk.errors import HuskError, InvalidParameter, Unavailable
from husk.storage.secrets.member_key import MemberKey
from husk.storage.secrets.sealing import Sealer
from husk.swarm import ca, port
from husk.swarm.ca import roots
from husk.swarm.membership.cluster import Cluster
from husk.swarm.membership.store_certificates import (
    CertificateOwner,
    IssuedCertificate,
    MemberCertificate,
    StoreCertificates,
)
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.node import Node
from husk.swarm.model.refusals import LOCKED
from husk.swarm.model.services import SECOND
from husk.swarm.model.swarm import Membership, SwarmRoot
from husk.swarm.signals import Signal
from husk.swarm.state import etcd, member_files
from husk.swarm.state.etcd.certificates import CertificateFiles, tls_context
from husk.swarm.state.etcd.visitors import read, visitors
from husk.swarm.state.records import SwarmRecords
from husk.text.endpoints import HostPort, read_endpoint, write_endpoints

log = logging.getLogger(__name__)

CLIENT_PORT, PEER_PORT = ETCD_PORTS
# How long a member may take until it answers, in seconds: a client waits for it.
READY = 12.0
# How long another one may take to say that it takes part, in seconds.
ANSWER = 3.0
# Between two times that a full etcd is given room.
RELIEF = 60 * SECOND
# Within which time managers restart their members where strangers are connected to them, in seconds.
SPREAD = 20.0
ROOT, CERTIFICATE, KEY, REVOKED = "ca.crt", "member.crt", member_files.KEY, "revoked.crl"
GIVEN_STORE = (
    "the managers of this swarm share an etcd that exists: start this daemon with the same --cluster-store, and join "
    "again"
)


class EtcdDriver:
    """etcd as this host runs it and asks it: members of its own, and calls to those of any host."""

    def find_program(self) -> None:
        """Unavailable where this host has no etcd. Blocks."""
        etcd.member.find_program()

    def check_free(self, places: Iterable[HostPort]) -> None:
        """Unavailable where another program has one of these. Blocks."""
        etcd.member.check_free(places)

    def make(self, settings: "etcd.member.MemberSettings", ended: Callable[[], None]) -> "etcd.member.Member":
        """Make a member of this host, which does not run yet."""
        return etcd.member.Member(settings, ended=ended)

    def wipe(self, directory: Path) -> None:
        """Remove what a member has on the disk. Blocks."""
        etcd.member.wipe(directory)

    def open(self, endpoints: list[HostPort], certificates: CertificateFiles) -> "etcd.members.Members":
        """Return the members that etcd has, asked at these addresses. Blocks."""
        return etcd.members.Members.open(endpoints, certificates)

    async def answers(self, endpoint: HostPort, certificates: CertificateFiles) -> bool:
        """Tell if the member at an address takes part now."""
        return await etcd.members.answers(endpoint, certificates, ANSWER)

    async def relieve(self, endpoints: list[HostPort], certificates: CertificateFiles) -> None:
        """Give a full etcd room."""
        await etcd.members.relieve(endpoints, await asyncio.to_thread(tls_context, certificates))


ETCD = EtcdDriver()


class EtcdMembership:
    def __init__(
        self,
        store: SwarmRecords,
        cluster: Cluster,
        sealer: Sealer,
        directory: Path,
        key: MemberKey,
        clock: Clock = CLOCK,
        ports: tuple[int, int] = ETCD_PORTS,
        driver: EtcdDriver = ETCD,
    ) -> None:
        """`ports` are those that a member of this host begins with, for clients and for other members."""
        self._driver = driver
        self._key = key
        # The member's key is sealed: it is started when the swarm has been unlocked.
        self._sealed = False
        # Held while that, or what is on the disk of the key, changes.
        self._opening = asyncio.Lock()
        # Why the key is not on the disk as the swarm wants it; empty where it is.
        self._unkept = ""
        self._new_ports = ports
        self._store = store
        self._cluster = cluster
        self._sealer = sealer
        self._directory = directory
        self._clock = clock
        self._member: etcd.member.Member | None = None
        self._certificate = MemberCertificate(
            directory / CERTIFICATE,
            directory / KEY,
            owner=lambda: CertificateOwner(self._place.node_id, self._place.advertise_address),
            root=self._store_root,
            sealer=sealer,
            renewed=self._renewed,
            clock=clock.seconds,
        )
        self._given = StoreCertificates(
            store,
            directory / CERTIFICATE,
            directory / KEY,
            directory / REVOKED,
            own=lambda: store.nodes.get(cluster.node_id) if cluster.active and not cluster.away else None,
            members=self._hosts,
            cut_off=self._cut_off,
            clock=clock,
        )
        self._tasks = Tasks()
        # The member has ended by itself.
        self.ended = Signal[[]]()
        # When the etcd was last given room.
        self._relieved = -RELIEF

    @property
    def here(self) -> bool:
        """True if this host has a member."""
        membership = self._cluster.membership
        return membership is not None and membership.others is not None

    @property
    def runs(self) -> bool:
        """True if this host has a member that is not on its way out."""
        return self.here and self._member is not None

    @property
    def trouble(self) -> str:
        """The reason why this host's member does not run, or its key is not kept as the swarm wants it; empty else."""
        told = self._member.trouble if self._member is not None else ""
        return f"this manager's member of etcd does not run, and is started again: {told}" if told else self._unkept

    @property
    def removed(self) -> bool:
        """True if the others have removed this host's member."""
        return self._member is not None and self._member.removed

    @property
    def own(self) -> HostPort:
        """The address where clients reach the member of this host."""
        return HostPort(self._place.advertise_address, self._ports[0])

    def where(self, members: Iterable[HostPort]) -> ClusterStoreConfig:
        """The store that these members are, for the daemon itself."""
        address = "etcd://" + ",".join(map(str, members))
        return ClusterStoreConfig(address, self._files)

    # --- its life

    async def open(self) -> None:
        """Go on with the member that the last daemon left, where this host has one."""
        membership = self._cluster.membership
        if membership is None or membership.others is None:
            # What a daemon left that died while it made this host a manager, or another one of it.
            await asyncio.to_thread(self._wipe)
            return
        others = {name: read_endpoint(peer, PEER_PORT) for name, peer in membership.others.items()}
        self._sealed = True
        try:
            self._sealed = not await asyncio.to_thread(self._key.open)
        except (HuskError, OSError) as error:
            log.error("the key of this manager's member of etcd cannot be used: %s", error)
        if self._sealed:
            log.warning("this manager's member of etcd is started when the swarm has been unlocked")
            return
        # One that ended while the host was off would keep the member from the others.
        await self._certificate.look()
        await asyncio.to_thread(self._given.prepare)
        self._member = self._made(membership.node_id, membership.advertise_address, others)
        self._certificate.start()
        self._given.start()
        try:
            await self._member.start()
        except HuskError as error:
            # Other members may answer; if not, calls say what is wrong.
            log.error("this manager's member of etcd cannot be started: %s", error.message)

    async def unlocked(self) -> None:
        """Start the member, if that could not be done before the swarm was unlocked."""
        await self._tasks.to_its_end(self._unlocked(), "the key of the member of etcd")

    async def _unlocked(self) -> None:
        async with self._opening:
            if self._sealed:
                # Whoever unlocks it is to hear why that cannot be used.
                await asyncio.to_thread(self._key.open)
                await self._renewed()
                try:
                    await self.open()
                except BaseException:
                    self._sealed = True  # whoever unlocks it once more begins anew
                    raise

    async def follow_lock(self) -> None:
        """The swarm may have been locked or unlocked: what is on the disk of the member's key is to be alike."""
        await self._tasks.to_its_end(self._follow_lock(), "the key of the member of etcd")

    async def _follow_lock(self) -> None:
        async with self._opening:
            if self.runs and self._cluster.active and not self._cluster.locked:
                sealed = self._cluster.record.autolock
                try:
                    await asyncio.to_thread(self._key.keep, sealed)
                    self._unkept = ""
                except (HuskError, OSError) as error:
                    how = "sealed, and may be in the clear on the disk" if sealed else "unsealed"
                    self._unkept = f"the key of this manager's member of etcd is not {how}: {error}"
                    raise

    async def close(self) -> None:
        """The daemon ends: the member goes on, for other hosts and for the next daemon."""
        await self._certificate.close()
        await self._given.close()
        await self._tasks.cancel_all()
        if self._member is not None:
            await self._member.let_go()

    async def begin(self) -> ClusterStoreConfig:
        """Start the first member; the store that it is. The caller moves the records there, or calls `drop`."""
        await asyncio.to_thread(self._driver.find_program)
        host = self._cluster.node.status.addr
        await self.check(host)
        swarm, node = await self._cluster.with_store_root(), self._cluster.node
        assert swarm.store_root is not None
        key, request = await asyncio.to_thread(ca.authority.new_request)
        signed = await asyncio.to_thread(
            roots.member_certificate,
            swarm.store_root,
            self._sealer,
            request,
            node.id,
            host,
            self._clock.seconds(),
            ca.authority.new_serial(),
        )
        await self._install(swarm.store_root.certificate.encode(), signed, key)
        await self._tell_port()
        await self._run(self._made(node.id, host, {}))
        return self.where([self.own])

    async def check(self, host: str) -> None:
        """Drop what a former try left; Unavailable where another program has a port that a member here needs."""
        # Whatever a former try has left is in nobody's way.
        await self.drop()
        await asyncio.to_thread(self._driver.check_free, [HostPort(host, port) for port in self._new_ports])

    def note_port(self, node: Node) -> Node:
        """Return the record of this host's node with the port where managers find the member."""
        return msgspec.structs.replace(node, store_port=self._port_told)

    @property
    def _port_told(self) -> int:
        return 0 if self._ports[0] == CLIENT_PORT else self._ports[0]

    async def _tell_port(self) -> None:
        if (node := self._cluster.node).store_port != self._port_told:
            await self._store.amend(node, self.note_port)

    async def enter(self, node: str, request: bytes) -> "port.enter.ManagerSecrets":
        """Give another manager the keys, certificate and members it needs (`husk.swarm.port.enter.EnterServicer`)."""
        swarm, record = self._cluster.swarm, self._store.nodes[node]
        key, unlock_key = await asyncio.to_thread(self._cluster.shared_keys)
        address = record.status.addr
        if swarm.store_root is None or not self.here:
            return port.enter.ManagerSecrets(key, unlock_key, address, b"", b"", ())
        if any(other.status.addr == address for other in self._managers() if other.id != node):
            raise InvalidParameter(f"another manager of the swarm has the address {address}, too: each needs its own")
        serial, now = ca.authority.new_serial(), self._clock.seconds()
        signed = await asyncio.to_thread(
            roots.member_certificate, swarm.store_root, self._sealer, request, node, address, now, serial
        )
        # Before anybody has it: it is revoked when the node is no manager any more.
        await self._given.note(serial, IssuedCertificate(node, address, now + roots.MEMBER_LIFE))
        members = [str(endpoint) for endpoint in self.endpoints(but=node)]
        return port.enter.ManagerSecrets(
            key, unlock_key, address, swarm.store_root.certificate.encode(), signed, tuple(members)
        )

    async def join(self, node: str, entered: "port.enter.ManagerSecrets", key: bytes) -> ClusterStoreConfig:
        """Bring a member of this host to those that there are; the store that it is then. `key` is that of the
        certificate. The caller calls `drop` where this fails."""
        if not entered.members:
            raise Unavailable(GIVEN_STORE)
        await self._install(entered.root, entered.certificate, key)
        there = [read_endpoint(text, CLIENT_PORT) for text in entered.members]
        own = HostPort(entered.address, self._ports[1])
        members = await self._members(there)
        try:
            others = await members.add(own)
            where = self.where([HostPort(entered.address, self._ports[0]), *there])
            await self._cluster.note_store(where, write_endpoints(others))
            await self._run(self._made(node, entered.address, others))
            await members.promote(own)
        finally:
            await members.close()
        return where

    async def spare(self, node: Node) -> None:
        """Raises where the swarm's etcd has no majority any more without the member of this manager: others are down.
        That a member which does not answer is removed helps, whoever else is down."""
        if not self.here or not node.status.addr:
            return
        endpoints = {endpoint.host: endpoint for endpoint in self.endpoints()}
        members = await self._members(self.endpoints())
        try:
            voting = [member.peer.host for member in await members.listing() if not member.learns]
        finally:
            await members.close()
        # Members of others that are no managers any more are on their way out, too, and count for nobody.
        managers = {other.status.addr for other in self._managers() if other.id != node.id}
        left = [host for host in voting if host in managers]
        if node.status.addr not in voting or not left:
            return
        asked = (self._answers(endpoints.get(host)) for host in left)
        there = sum(await asyncio.gather(*asked))
        if there < len(left) // 2 + 1:
            raise InvalidParameter(
                f"rpc error: code = FailedPrecondition desc = without node {node.id} the managers of the swarm would "
                f"lose their majority: of the {len(left)} others {there} can be reached. Bring the others back, or "
                "demote those that are lost first"
            )

    async def _answers(self, endpoint: HostPort | None) -> bool:
        """Tell if the member at an address takes part now."""
        if endpoint is None:
            return False
        return await self._driver.answers(endpoint, CertificateFiles(*self._files))

    async def withdraw(self, members: Iterable[str], noted: Callable[[], Awaitable[None]]) -> None:
        """Undo what `join` has done, at those members too. `noted` writes down that this host has no member: at first,
        for without the files that go then the next daemon could not open that store."""
        membership = self._cluster.membership
        own = membership.advertise_address if membership is not None else ""
        with contextlib.suppress(HuskError):
            await self._remove(lambda host: host == own, [read_endpoint(text, CLIENT_PORT) for text in members])
        await self.halt()
        await noted()
        await self.drop()

    async def depart(self, *, forced: bool = False) -> None:
        """This host is no manager any more: its member is removed from the others. Safe to call twice. Where they keep
        it, it goes on, unless it is `forced` to go all the same: without it they might have lost the majority."""
        if self.here:
            own, others = self._cluster.advertise_address, self.endpoints(but=self._cluster.node_id)
            if others:
                if self._member is not None:
                    await self._member.expect_end()
                try:
                    await self._remove(lambda host: host == own, others)
                except HuskError as error:
                    if not forced:
                        if self._member is not None:
                            await self._member.go_on()
                        raise
                    log.warning("the other managers still have this host as a member of etcd: %s", error.message)

    async def halt(self) -> None:
        """Our member runs no longer, its files are there. Safe to call twice."""
        async with self._opening:
            self._sealed, self._unkept = False, ""
            await self._certificate.close()
            await self._given.close()
            if self._member is not None:
                member, self._member = self._member, None
                await member.stop()

    async def drop(self) -> None:
        """Nothing of a member is left on this host, which does not count on one any more. Safe to call twice."""
        await self.halt()
        await asyncio.to_thread(self._wipe)

    async def settle(self) -> None:
        """Let our member vote, and others know its port, where a daemon died before it could do that."""
        await self._tell_port()
        own = self._cluster.advertise_address
        members = await self._members(self.endpoints())
        try:
            if any(member.learns and member.peer.host == own for member in await members.listing()):
                await members.promote(HostPort(own, self._ports[1]))
        finally:
            await members.close()

    async def bring_back(self) -> None:
        """The others have removed our member though this host is a manager: a daemon died while it undid a promotion,
        or somebody did it by hand. It begins anew, with the records that they have; then call `settle`."""
        place, member = self._place, self._member
        assert member is not None
        log.warning("the other managers have removed this host's member of etcd: it is added again, and begins anew")
        there = self.endpoints(but=place.node_id)
        members = await self._members(there)
        try:
            others = await members.add(HostPort(place.advertise_address, self._ports[1]))
        finally:
            await members.close()
        # With these the next daemon goes on, if this one dies before the member knows them itself.
        await self._cluster.note_store(self.where([self.own, *there]), write_endpoints(others))
        await member.clear()
        await self._run(self._made(place.node_id, place.advertise_address, others))

    async def tidy(self) -> None:
        """Remove members of hosts that are no managers any more. For the manager that plans."""
        hosts = {node.status.addr for node in self._managers()}
        await self._remove(lambda host: host not in hosts, self.endpoints())

    async def start_alone(self) -> None:
        """Most members are lost: go on with this one alone."""
        if self._sealed or self._cluster.locked:
            raise Unavailable(LOCKED)
        if self._member is None:
            raise Unavailable("this host has no member of the swarm's etcd, so it cannot make a new cluster of it")
        await self._member.start_alone()

    def know(self, endpoints: Iterable[HostPort]) -> None:
        """Ask these members from now on."""
        if isinstance(self._store.store, etcd.store.EtcdStore) and (known := list(endpoints)):
            self._store.store.know(known)
            self._store.store.full = self._relieve_soon

    def endpoints(self, but: str = "") -> list[HostPort]:
        """Return the addresses of managers' members, our own first."""
        nodes = sorted(self._managers(), key=lambda node: (node.id != self._cluster.node_id, node.id))
        return [HostPort(node.status.addr, node.store_port or CLIENT_PORT) for node in nodes if node.id != but]

    def _relieve_soon(self) -> None:
        """Our etcd is full: see that there is room, at most once in a while."""
        if (now := self._clock.awake()) - self._relieved >= RELIEF:
            self._relieved = now
            self._tasks.spawn(self._relieve(), "room in the swarm's etcd")

    async def _relieve(self) -> None:
        log.error("the swarm's etcd is full: what was before is forgotten, and its files written anew")
        try:
            await self._driver.relieve(self.endpoints(), CertificateFiles(*self._files))
        except HuskError as error:
            log.error("the swarm's etcd is full, and could not be relieved: %s", error.message)

    # --- parts of it

    def _managers(self) -> list[Node]:
        return [node for node in self._store.nodes.values() if node.is_manager and node.status.addr]

    async def _remove(self, unwanted: Callable[[str], bool], endpoints: list[HostPort]) -> None:
        members = await self._members(endpoints)
        try:
            for member in await members.listing():
                if unwanted(member.peer.host):
                    await members.remove(member)
        finally:
            await members.close()

    async def _hosts(self) -> set[str]:
        """Return the hosts of all members of the swarm's etcd, be they managers' or not."""
        members = await self._members(self.endpoints())
        try:
            return {member.peer.host for member in await members.listing()}
        finally:
            await members.close()

    async def _cut_off(self) -> None:
        """A connection outlives its certificate: where somebody who is no manager has one, the member begins anew."""
        managers = {node.status.addr for node in self._managers()}
        strangers = visitors(await asyncio.to_thread(read), self._ports) - managers
        if strangers and self._member is not None:
            # All managers find that at the same time, and most of them are needed at each moment.
            await asyncio.sleep(random.uniform(0, SPREAD))
            log.warning("etcd is restarted: %s, no manager any more, is connected to it", ", ".join(sorted(strangers)))
            await self._member.restart()

    async def _members(self, endpoints: list[HostPort]) -> "etcd.members.Members":
        return await asyncio.to_thread(self._driver.open, endpoints, CertificateFiles(*self._files))

    async def _run(self, member: "etcd.member.Member") -> None:
        self._member = member
        await member.start()
        await member.wait_ready(READY)
        self._certificate.start()
        self._given.start()

    def _made(self, node: str, host: str, others: dict[str, HostPort]) -> "etcd.member.Member":
        return self._driver.make(
            etcd.member.MemberSettings(
                name=node,
                directory=self._directory,
                client=HostPort(host, self._ports[0]),
                peer=HostPort(host, self._ports[1]),
                certificates=CertificateFiles(*self._files),
                others=others,
                revoked=self._directory / REVOKED,
            ),
            ended=self.ended.emit,
        )

    @property
    def _place(self) -> Membership:
        membership = self._cluster.membership
        assert membership is not None, "only a host in a swarm has a member"
        return membership

    @property
    def _ports(self) -> tuple[int, int]:
        """Those that the member began with: others know it by them."""
        return self._place.store_ports or ETCD_PORTS

    def _store_root(self) -> SwarmRoot | None:
        return self._store.swarm.store_root if self._store.swarm is not None else None

    async def _renewed(self) -> None:
        """The daemon shows the new certificate too; the member reads it by itself."""
        if isinstance(self._store.store, etcd.store.EtcdStore):
            await self._store.store.renew(CertificateFiles(*self._files))

    @property
    def _files(self) -> tuple[Path, Path, Path]:
        return self._directory / ROOT, self._directory / CERTIFICATE, self._directory / KEY

    async def _install(self, root: bytes, certificate: bytes, key: bytes) -> None:
        """In place of whatever a former try has left."""
        await self.drop()
        contents = dict(zip(self._files, (root, certificate, key), strict=True))
        await asyncio.to_thread(member_files.install, contents)
        await asyncio.to_thread(self._given.prepare)
        # Written down with the store that it belongs to.
        self._cluster.assume(msgspec.structs.replace(self._place, store_ports=self._new_ports))

    def _wipe(self) -> None:
        self._key.drop()
        if member_files.is_there(self._directory):
            self._driver.wipe(self._directory)
