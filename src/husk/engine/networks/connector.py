"""Brings a container onto its networks and off them.

A start leases a sandbox from the first network and attaches the others to it, then publishes ports through the endpoint
that leads outside. Everything that was taken is in the container's draft at once, so that `disconnect` can give it back
whatever happened in between; what no record knows after a crash is swept at the next start.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from ipaddress import IPv6Address
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from husk.engine.model.container import Container, Draft, Endpoint
from husk.engine.model.events import Events
from husk.engine.networks.endpoints import (
    fresh,
    gateway6_endpoint,
    gateway_endpoint,
    in_order,
    lease,
    leased,
    parse_links,
    wanted_address,
    wanted_address6,
)
from husk.engine.networks.links import ContainerLink, link
from husk.engine.networks.live import LiveNetwork, Roster
from husk.engine.networks.names import NameService
from husk.engine.networks.publisher import Departures, Publisher
from husk.engine.networks.requests import check_attachable, interface_name, interface_sysctls, link_local, without_ipv6
from husk.engine.networks.sharing import Sharing, occupant
from husk.errors import Conflict, Forbidden, HuskError, InvalidParameter, NotFound, SystemFault, Unavailable
from husk.network import sandbox
from husk.network.endpoint import EndpointOptions
from husk.network.firewall import Firewall
from husk.network.ports import HostPorts, PublishedPort
from husk.network.provision import MOST_PORTS, BridgeFull
from husk.network.sandbox import NO_ROUTE, DefaultRoute, Lease

log = logging.getLogger(__name__)


class Connected(Struct, frozen=True):
    """The facts about its network that a container's files must tell."""

    # What `host-gateway` in extra hosts stands for.
    host_gateways: tuple[str, ...]
    # The daemon resolves names for it.
    resolver: bool = False
    # The container whose network it shares.
    shared_with: str = ""
    # The containers that it is linked to on the default bridge.
    links: tuple[ContainerLink, ...] = ()
    # Those that are linked to it, and what their files must say.
    linked_by: tuple[tuple[Container, "Connected"], ...] = ()


class Sandboxes(NamedTuple):
    """The operations on sandboxes that belong to no single network. All of them block."""

    build_empty: Callable[[Path], str] = sandbox.build_empty
    set_default_route: Callable[[str, DefaultRoute, DefaultRoute], None] = sandbox.set_default_route
    abandon: Callable[[str], None] = sandbox.abandon


SANDBOXES = Sandboxes()


class Connector:
    def __init__(
        self,
        roster: Roster,
        firewall: Firewall,
        ports: HostPorts,
        names: Callable[[], NameService],
        events: Events,
        find_container: Callable[[str], Container],
        netns_dir: Path,
        host_gateways: tuple[str, ...] = (),
        bring: Callable[[LiveNetwork], Awaitable[None]] | None = None,
        seek: Callable[[str], Awaitable[None]] | None = None,
        sandboxes: Sandboxes = SANDBOXES,
    ) -> None:
        """`bring` makes a network that hosts share ready on this one, `seek` asks them for one that is not known."""
        self._sandboxes = sandboxes
        self._bring = bring
        self._seek = seek
        # Who has which address on networks that hosts share; None while nobody knows.
        self.sharing: Sharing | None = None
        self._roster = roster
        self._netns_dir = netns_dir
        self._host_gateways = host_gateways
        self._names = names
        self._events = events
        self._find_container = find_container
        self._departures = Departures()
        self._publisher = Publisher(roster, firewall, ports, self._departures)

    def adopt(self, draft: Draft) -> Sequence[PublishedPort]:
        """Take a running container of an earlier daemon over; the ports that lead to it."""
        for name, endpoint in draft.record.endpoints.items():
            if endpoint.endpoint_id and name in self._roster.by_name:
                self._roster.by_name[name].enter(draft)
        return self._publisher.adopt(draft)

    async def resume(self, draft: Draft) -> None:
        """Give a running container again what it has from the daemon itself, or what a crash kept from it."""
        record = draft.record
        if len(record.endpoints) > 1 and record.sandbox_path:
            await self._try_default_route(record)
        if self.resolves(record):
            await self._names().serve(draft)
        if not record.published:
            await self._publisher.publish(draft)

    async def connect(self, draft: Draft) -> Connected:
        """Put a container that is about to run on its networks."""
        mode = draft.record.host_config.network_mode
        host_gateways = self.gateways_of_host(mode)
        if mode.startswith("container:"):
            return self._share(draft, mode.partition(":")[2], host_gateways)
        links = tuple(self._links(draft.record))
        with _setting_up():
            for endpoint in in_order(draft.record):
                if endpoint.network_name == "bridge" and self._roster.bridge is None:
                    await self._connect_to_nothing(draft)
                else:
                    await self._connect(draft, endpoint)
            if len(draft.record.endpoints) > 1 and draft.record.sandbox_path:
                await self._set_default_route(draft.record)
            await self._publisher.publish(draft)
            resolver = self.resolves(draft.record)
            if resolver:
                await self._names().serve(draft)
        return Connected(host_gateways, resolver, links=links, linked_by=tuple(self._linked_by(draft.record)))

    async def disconnect(self, draft: Draft) -> None:
        """Give back what `connect` took. Safe to call twice."""
        with self._departures.departing():
            await self._disconnect(draft)

    def forget(self, draft: Draft) -> None:
        """Take out of the record what `disconnect` would give back, if that has been done."""
        endpoints = {name: fresh(endpoint) for name, endpoint in draft.record.endpoints.items()}
        draft.change(sandbox_path="", published=[], endpoints=endpoints)

    async def _disconnect(self, draft: Draft) -> None:
        self._names().stop(draft.id)
        sandbox_path = draft.record.sandbox_path
        draft.change(sandbox_path="")
        try:
            await self._publisher.withdraw(draft)
        finally:
            await self._leave_all(draft, sandbox_path)

    async def _leave_all(self, draft: Draft, sandbox_path: str) -> None:
        released = False
        record = draft.record
        for name, endpoint in record.endpoints.items():
            draft.put(fresh(endpoint))
            if (live := self._roster.by_name.get(name)) is None:
                continue
            if live.exit(record.id) and endpoint.endpoint_id:
                self._announce("disconnect", live, record)
            if live.bridged and (given := lease(sandbox_path, endpoint)) is not None:
                live.driver.release(given)
                released = True
        if sandbox_path and not released and not record.host_config.network_mode.startswith("container:"):
            await asyncio.to_thread(self._sandboxes.abandon, sandbox_path)

    async def join(self, draft: Draft, endpoint: Endpoint) -> None:
        """Put a running container on one more network. The caller saves the draft."""
        draft.put(endpoint)
        try:
            if not draft.record.sandbox_path:
                raise Conflict(f"container {draft.id} runs without a network of its own: stop it, connect it, start it")
            await self._connect(draft, endpoint)
            await self._set_default_route(draft.record)
            await self._publisher.move(draft)
            if self.resolves(draft.record):
                await self._names().serve(draft)
        except BaseException:
            await self.leave(draft, draft.take(endpoint.network_name))
            raise

    async def leave(self, draft: Draft, endpoint: Endpoint) -> None:
        """Take a running container off a network. The endpoint is out of the record already, and that is saved."""
        live = self._roster.by_name.get(endpoint.network_name)
        if live is None or draft.id not in live.members:
            return
        try:
            await self._publisher.move(draft)
            if (given := lease(draft.record.sandbox_path, endpoint)) is not None:
                await live.driver.detach(given)
        finally:
            # A network that hosts share goes from this one with its last member.
            live.exit(draft.id)
        if given is not None:
            await self._try_default_route(draft.record)
        if not self.resolves(draft.record):
            self._names().stop(draft.id)
        if endpoint.endpoint_id:
            self._announce("disconnect", live, draft.record)

    async def _connect(self, draft: Draft, endpoint: Endpoint) -> None:
        if self._seek is not None and endpoint.network_name not in self._roster.by_name:
            await self._seek(endpoint.network_name)
        live, record = self._live(endpoint), draft.record
        check_attachable(live, record)
        endpoint = replace(endpoint, network_id=live.record.id)
        draft.put(endpoint)
        live.enter(draft)
        if live.record.vni and self._bring is not None:
            await self._bring(live)
        if live.bridged and not record.config.network_disabled:
            request = endpoint.request
            mac = request.mac_address
            if not mac and endpoint.network_name == record.host_config.network_mode:
                mac = record.config.mac_address
            address6 = wanted_address6(request)
            options = EndpointOptions(
                address=wanted_address(request),
                address6=str(IPv6Address(address6)) if address6 else "",
                mac=mac,
                name=interface_name(request),
                link_local=link_local(request),
                sysctls=interface_sysctls(request),
                ipv6=not without_ipv6(record, request),
            )
            try:
                given = await self._departures.retry(Forbidden, lambda: self._place(record, live, endpoint, options))
            except BridgeFull as error:
                raise Unavailable(
                    f"network {endpoint.network_name} is full: a Linux bridge takes at most {MOST_PORTS:,} ports, "
                    "one per container. Put the container on another network (docker network create)"
                ) from error
            endpoint = leased(endpoint, given)
            draft.change(sandbox_path=given.sandbox_path)
        draft.put(replace(endpoint, endpoint_id=os.urandom(32).hex()))
        self._announce("connect", live, record)

    async def _connect_to_nothing(self, draft: Draft) -> None:
        """Build an empty sandbox, as there is no default network; the container may be put on others later."""
        if not draft.record.sandbox_path and not draft.record.config.network_disabled:
            draft.change(sandbox_path=await asyncio.to_thread(self._sandboxes.build_empty, self._netns_dir))

    async def _place(self, record: Container, live: LiveNetwork, endpoint: Endpoint, options: EndpointOptions) -> Lease:
        if not live.record.vni:
            return await self._lease(record, live, options)
        if self.sharing is None:
            raise Unavailable(f"the addresses of network {live.record.name} are the swarm's, whose store is not known")

        async with self.sharing.claimed(live.record, options, occupant(record, endpoint)) as claimed:
            return await self._lease(record, live, claimed)

    async def _lease(self, record: Container, live: LiveNetwork, options: EndpointOptions) -> Lease:
        if record.sandbox_path:
            return await live.driver.attach(record.sandbox_path, options)
        return await live.driver.acquire(options)

    def _live(self, endpoint: Endpoint) -> LiveNetwork:
        try:
            return self._roster.by_name[endpoint.network_name]
        except KeyError:
            raise NotFound(f"network {endpoint.network_name} not found") from None

    def resolves(self, record: Container) -> bool:
        return any(
            live.record.resolves_names
            for name in record.endpoints
            if (live := self._roster.by_name.get(name)) is not None and live.bridged
        ) and bool(record.sandbox_path)

    def _links(self, record: Container, starting: bool = True) -> Iterator[ContainerLink]:
        """Yield the container's view of those it is linked to. All must run when it starts; later they may end."""
        bridge = self._roster.bridge
        if record.host_config.network_mode != "bridge" or bridge is None:
            return

        for alias, target in parse_links(record.host_config.links).items():
            try:
                other = self._linked(target)
            except (NotFound, Conflict):
                if starting:
                    raise
                continue
            if starting and not other.state.running:
                raise Conflict(f"Cannot link to a non running container: /{other.name} AS /{record.name}/{alias}")
            # One that is about to run has its address already, though its record does not tell yet.
            member = bridge.members.get(other.id)
            endpoint = (member.record if member is not None else other).endpoints.get("bridge")
            if endpoint is None and starting:
                raise Conflict(f"container {other.id} not attached to default bridge network")
            if endpoint is not None and (starting or endpoint.ip_address):
                yield link(alias, record.name, other, endpoint.ip_address)

    def _linked_by(self, record: Container) -> Iterator[tuple[Container, Connected]]:
        """Running containers that see this one."""
        bridge = self._roster.bridge
        if "bridge" not in record.endpoints or bridge is None:
            return
        for other in (draft.record for draft in bridge.linking.values()):
            if other.id == record.id:
                continue
            if any(self._is(record, target) for target in parse_links(other.host_config.links).values()):
                yield other, self.described(other)

    def _linked(self, reference: str) -> Container:
        """The container that a link means: of one in another's network it is that other."""
        return self.owner(self._find_container(reference))

    def _is(self, record: Container, reference: str) -> bool:
        with suppress(NotFound, Conflict):
            return self._linked(reference).id == record.id
        return False

    def described(self, record: Container) -> Connected:
        """Return the facts that the files of a running container must tell by now."""
        links = tuple(self._links(record, starting=False))
        gateways = self.gateways_of_host(record.host_config.network_mode)
        return Connected(gateways, self.resolves(record), links=links)

    def gateways_of_host(self, mode: str = "") -> tuple[str, ...]:
        """Return the addresses that `host-gateway` means: as the settings say, else the default bridge's own."""
        if self._host_gateways or mode == "host":
            return self._host_gateways or ("127.0.0.1",)
        if (bridge := self._roster.bridge) is None:
            return ()
        return tuple(filter(None, (bridge.driver.gateway, bridge.driver.gateway6)))

    def _share(self, draft: Draft, reference: str, host_gateways: tuple[str, ...]) -> Connected:
        try:
            other = self._find_container(reference)
        except NotFound as error:
            raise InvalidParameter(f"joining network namespace of container: {error.message}") from None
        if other.id == draft.id:
            raise InvalidParameter("cannot join own network")
        if other.state.status == "restarting":
            raise Conflict(f"cannot join network namespace of a restarting container: {other.id}")
        if not other.state.running:
            what = f"container {other.name} is {other.state.status}"
            raise Conflict(f"cannot join network namespace of a non running container: {what}")
        owner = self.owner(other)
        # The path that a guest has is that of its host, which may have ended meanwhile.
        guest = other.host_config.network_mode.startswith("container:")
        own = "" if guest else other.sandbox_path
        names = {"hostname": other.config.hostname, "domainname": other.config.domainname}
        path = own or f"/proc/{other.state.pid}/ns/net"
        draft.change(sandbox_path=path, config=replace(draft.record.config, **names))
        return Connected(host_gateways, shared_with=owner.id)

    def owner(self, guest: Container) -> Container:
        """The container that has the network, and with it the files, that a container is in."""
        owner, passed = guest, set[str]()
        while owner.host_config.network_mode.startswith("container:") and owner.id not in passed:
            passed.add(owner.id)
            reference = owner.host_config.network_mode.partition(":")[2]
            try:
                owner = self._find_container(reference)
            except NotFound:
                # Not as a 404: clients would take the container that is being started for the missing one.
                raise Conflict(
                    f"cannot join network namespace of container {guest.name}: it is that of container {reference}, "
                    "which has been removed"
                ) from None
        return owner

    async def _set_default_route(self, record: Container) -> None:
        leading, leading6 = gateway_endpoint(record), gateway6_endpoint(record)
        route = DefaultRoute(leading.gateway, leading.interface) if leading else NO_ROUTE
        route6 = DefaultRoute(leading6.gateway6, leading6.interface) if leading6 else NO_ROUTE
        await asyncio.to_thread(self._sandboxes.set_default_route, record.sandbox_path, route, route6)

    async def _try_default_route(self, record: Container) -> None:
        """A container may have changed its own network so that there is no way to the gateway: that is its affair."""
        try:
            await self._set_default_route(record)
        except SystemFault as error:
            log.warning("container %s: %s", record.id[:12], error.message)

    def _announce(self, action: str, live: LiveNetwork, record: Container) -> None:
        if not record.name:
            return  # nobody knows of a build's step
        attributes = {"container": record.id, "name": live.record.name, "type": live.record.driver}
        self._events.publish("network", action, live.record.id, attributes)


@contextmanager
def _setting_up() -> Iterator[None]:
    """Tell as dockerd does what keeps a container from its networks at a start."""
    try:
        yield
    except HuskError as error:
        raise type(error)(f"failed to set up container networking: {error.message}") from error
