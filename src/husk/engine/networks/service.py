"""The networks that there are: made, listed, removed and restored, and what containers and services ask of them."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.config import AddressPool, Config
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.container import KIND as CONTAINER
from husk.engine.model.container import Container, Draft, Endpoint
from husk.engine.model.container_config import EndpointRequest
from husk.engine.model.events import Events
from husk.engine.model.filters import Filters
from husk.engine.model.network import BUILTIN, Network, NetworkRequest
from husk.engine.networks import default_bridge, options, restore
from husk.engine.networks.balancing import Balancing, ServiceAddresses
from husk.engine.networks.connector import Connected, Connector
from husk.engine.networks.live import KIND, LiveNetwork, Roster
from husk.engine.networks.load_balancer import LoadBalancer, load_balancer
from husk.engine.networks.names import NameService
from husk.engine.networks.options import check_template, filled_in, template_users
from husk.engine.networks.overlays import Overlays, SendersGuard, TunnelRules
from husk.engine.networks.presence import Presence, refuse_clash
from husk.engine.networks.prune import prune
from husk.engine.networks.requests import one_more, places
from husk.engine.networks.sharing import Sharing
from husk.errors import Conflict, Forbidden, HuskError, NotFound
from husk.network import drop_policies, host, legacy_rules
from husk.network.bridge import BridgeDriver
from husk.network.firewall import Firewall
from husk.network.guardian import Guarded, Guardian
from husk.network.host import machine_id
from husk.network.ipam import special, unique_local
from husk.network.ports import HostPorts
from husk.network.relay import Relay
from husk.network.settings import BridgeSettings
from husk.storage.state.store import Change, StateStore

log = logging.getLogger(__name__)

# A network that somebody made keeps fewer, and only while containers come and go.
WARM_ON_USER_NETWORK = 2
WARM_SECONDS = 20.0
# Whoever waits for the daemon gets its first answers in this time, with nothing else under way.
_FIRST_ANSWERS = 0.05


class NetworkDrivers(NamedTuple):
    """The drivers of networks on this host: bridges, the firewall and what watches it, what others' rules drop, and
    the removal of what belongs to nobody."""

    bridges: type[BridgeDriver] = BridgeDriver
    firewall: Callable[[str], Firewall] = Firewall
    guardian: Callable[[Sequence[Guarded]], Guardian] = Guardian
    policies: Callable[[], drop_policies.RememberedPolicies] = drop_policies.RememberedPolicies
    sweep: Callable[..., None] = restore.sweep


DRIVERS = NetworkDrivers()


class Networks:
    def __init__(
        self,
        config: Config,
        state: StateStore,
        events: Events,
        find: Callable[[str], Container],
        drivers: NetworkDrivers = DRIVERS,
    ) -> None:
        self._drivers = drivers
        self._config = config
        self._state = state
        self._events = events
        self._roster = Roster()
        self._firewall = drivers.firewall(config.nft_table)
        self._relay = Relay()
        self._ports = HostPorts(self._relay)
        self._connector = Connector(
            self._roster,
            self._firewall,
            self._ports,
            lambda: self._names,
            events,
            find,
            config.exec_root / "netns",
            config.host_gateway_ips,
            bring=lambda live: self.presence.bring(live),
            seek=self.seek,
        )
        self.balancing = Balancing(self._roster, self._ports, config.nft_table + "-lb")
        tunnel = restore.tunnel(config)
        senders = config.nft_table + "-vx"
        self.overlays = Overlays(self._roster, f"husk bridge of {config.nft_table}", tunnel, senders)
        self._changing = asyncio.Lock()
        self._sharing: Sharing | None = None
        # Asks a manager of the swarm for a network that a plain container is to be on.
        self.seeker: Callable[[str], Awaitable[None]] | None = None
        self._guardian = drivers.guardian(
            (
                self._firewall,
                self.balancing.balancer,
                TunnelRules(self.overlays, tunnel.table),
                SendersGuard(self.overlays, senders),
            )
        )
        self._tasks = Tasks()
        self._base = BridgeSettings(
            interface=config.bridge_name,
            owner=f"husk bridge of {config.nft_table}",
            netns_dir=config.exec_root / "netns",
            pools=config.default_address_pools,
            pool6=str(unique_local(f"{machine_id()} {config.instance}")),
            warm=WARM_ON_USER_NETWORK,
            warm_for=WARM_SECONDS,
            forward=config.ip_forward,
        )

    @cached_property
    def _names(self) -> NameService:
        """Loaded with the first container on a network that resolves names."""

        return NameService(self._roster, self._events)

    @cached_property
    def _drop_policies(self) -> drop_policies.RememberedPolicies:
        return self._drivers.policies()

    @cached_property
    def _legacy_rules(self) -> legacy_rules.RememberedRules:
        return legacy_rules.RememberedRules()

    @cached_property
    def presence(self) -> Presence:
        """Loaded where hosts share networks."""

        return Presence(
            roster=self._roster,
            state=self._state,
            firewall=self._firewall,
            overlays=self.overlays,
            base=self._base,
            changing=self._changing,
            mended=self._mended,
        )

    @cached_property
    def service_addresses(self) -> ServiceAddresses:
        """Loaded with the first service that is to have one on a network of this host."""

        return ServiceAddresses(self._roster, self._state, self._changing)

    def share(self, sharing: Sharing | None) -> None:
        """From now on there are networks that hosts share, and this knows who has which address there; None: none."""
        self._sharing = self._connector.sharing = sharing

    async def seek(self, reference: str) -> None:
        """Know a network that others of the swarm have, if it is to be had: nothing is done for one that is known."""
        if self.seeker is None or reference in (*BUILTIN, "default", "") or reference.startswith("container:"):
            return
        with suppress(NotFound):
            self._roster.find(reference)
            return
        await self.seeker(reference)

    async def plan(
        self,
        request: NetworkRequest,
        pools: tuple[AddressPool, ...],
        known: Collection[Network],
        used: Collection[str] = (),
    ) -> Network:
        """A network that hosts share, as its record will be; nothing is made yet. `known` are those there are, `used`
        the subnets that other hosts use."""
        options = self._config.default_network_opts
        return await self.presence.plan(request, self._new_id(), options, pools, known, used)

    async def subnets(self) -> tuple[str, ...]:
        """Return the subnets that this host reaches by other ways than networks of a swarm."""

        lives = self._roster.by_name.values()
        ours = {live.record.bridge_name for live in lives if live.record.scope == "swarm"}
        return await asyncio.to_thread(host.used, ours)

    @classmethod
    async def open(
        cls,
        config: Config,
        state: StateStore,
        events: Events,
        containers: Iterable[Draft],
        find: Callable[[str], Container],
        drivers: NetworkDrivers = DRIVERS,
    ) -> "Networks":
        """Make networks and host agree again: bridges, rules and ports as the records say, and nothing else of ours."""
        with ExitStack() as claims:
            settled = await asyncio.to_thread(claims.enter_context, restore.named(config))
            networks = cls(settled, state, events, find, drivers)
            await networks._restore(list(containers))
        return networks

    # --- looking

    def listing(self) -> list[Network]:
        return [live.record for live in self._roster.by_name.values()]

    def find(self, reference: str) -> Network:
        """By full id, name, or unique leading part of an id."""
        return self._roster.find(reference).record

    def members(self, network: Network) -> list[Container]:
        """The running containers on a network; what has no name, a build's step, is not shown."""
        live = self._roster.by_name.get(network.name)
        return [draft.record for draft in live.members.values() if draft.record.name] if live else []

    def load_balancer(self, network: Network) -> LoadBalancer | None:
        """As whom this host leads to services on an overlay network; None where nobody needs that here."""
        live = self._roster.by_name.get(network.name)
        if live is None or not live.bridged or network.driver != "overlay":
            return None
        own = self.overlays.own(network)
        if not (own or live.members or network.ingress):
            return None

        return load_balancer(network, own)

    def addresses(self, network: Network) -> dict[str, tuple[int, int]]:
        """(addresses in use, addresses left to give out) by subnet."""
        live = self._roster.by_name.get(network.name)
        if live is None or not live.bridged:
            return {}
        return {subnet: (used + special(subnet), left) for subnet, (used, left) in live.driver.usage.items()}

    async def warnings(self) -> list[str]:
        """Return the warnings of what keeps containers from their networks on this host."""
        interfaces = [live.driver.interface for live in self._roster.by_name.values() if live.bridged]
        found = await asyncio.to_thread(self._drop_policies.look, interfaces)
        old = await self._legacy_rules.look(interfaces)
        return [*(policy.warning for policy in found), *(rules.warning for rules in old if rules.drop)]

    # --- making and removing

    async def create(self, request: NetworkRequest, pools: tuple[AddressPool, ...] = ()) -> Network:
        """`pools` are where a subnet comes from, if the request names none and it is not the usual ones."""

        base = self._base._replace(pools=pools or self._base.pools)
        async with self._changing:
            request = options.with_defaults(request, self._config.default_network_opts)
            check_template(request)
            request = filled_in(request, self.listing())
            options.check(request, self.listing())
            network = options.record(request, self._new_id(), rfc3339(now_ns()))
            driver = None
            if network.scope == "swarm":
                # One that is chosen here clashes with nothing.
                await asyncio.to_thread(refuse_clash, network)
            if not network.config_only:
                settings = options.settings(network, base)
                driver = await self._drivers.bridges.open(settings, None, (), self._firewall, self._mended)
                network = _chosen(network, driver)
            try:
                await self._state.add(Change(KIND, network.id, msgspec.json.encode(network)))
            except BaseException:
                if driver is not None:
                    await asyncio.shield(driver.close(remove=True))
                raise
            self._roster.by_name[network.name] = LiveNetwork(network, driver)
        self._publish("create", network)
        return network

    async def remove(self, reference: str, needed: Callable[[Network], bool] = lambda _: False) -> None:
        """`needed` may know of others than containers who rely on a network: then it stays."""

        async with self._changing:
            live = self._roster.find(reference)
            network = live.record
            if needed(network):
                raise Conflict(f"network {network.name} is in use")
            if network.builtin:
                raise Forbidden(f"{network.name} is a pre-defined network and cannot be removed")
            if live.members:
                members = [draft.record for draft in live.members.values()]
                users = ", ".join(f'name:"{c.name}" id:"{_endpoint_id(c, network)}"' for c in members)
                raise Forbidden(f"error while removing network: network {network.name} has active endpoints ({users})")
            if template_users(network, self.listing()):
                raise Forbidden(f'error while removing network: configuration network "{network.name}" is in use')
            if network.vni and self._sharing is not None:
                await self._sharing.removing(network)
            # Out of sight at once: nobody gets on it any more.
            del self._roster.by_name[network.name]
            try:
                await self._state.commit(Change(KIND, network.id, None))
            except BaseException:
                self._roster.by_name[network.name] = live
                raise
            if live.bridged:
                await self.overlays.remove(network)
                await live.driver.close(remove=True)
        self._publish("destroy", network)

    async def prune(self, filters: Filters, needed: Callable[[Network], bool] = lambda _: False) -> list[str]:
        """Remove the networks that no running container is on and nobody else needs; their names."""

        removed = await prune(self._roster.by_name.values(), filters, lambda id: self.remove(id, needed))
        self._events.publish("network", "prune", "", {"reclaimed": "0"})
        return removed

    # --- containers

    def endpoints(
        self, mode: str, requests: dict[str, EndpointRequest], links: list[str] | None = None
    ) -> dict[str, Endpoint]:
        """A new container's places on its networks; it has no addresses before it runs."""

        return places(self._roster, mode, requests, links or [])

    async def connect(self, draft: Draft) -> Connected:
        """Put a container that is about to run on its networks."""
        return await self._connector.connect(draft)

    async def disconnect(self, draft: Draft) -> None:
        """Give back what `connect` took. Safe to call twice."""
        await self._connector.disconnect(draft)

    def forget(self, draft: Draft) -> None:
        """Drop what the record names of a former daemon's time: it is given back, as `open` keeps only what runs."""
        self._connector.forget(draft)

    def new_endpoint(self, reference: str, record: Container, request: EndpointRequest) -> Endpoint:
        """A container's place on one more network, if it may have it."""

        return one_more(self._roster.find(reference), record, request)

    async def join(self, draft: Draft, endpoint: Endpoint) -> None:
        """Put a running container on one more network."""
        await self._connector.join(draft, endpoint)

    async def leave(self, draft: Draft, endpoint: Endpoint) -> None:
        """Take a running container off a network."""
        await self._connector.leave(draft, endpoint)

    def owner(self, record: Container) -> Container:
        """The container that has the network which a container is in: most often itself."""
        return self._connector.owner(record)

    def described(self, record: Container) -> Connected:
        """Return the facts about its networks that the files of a running container must tell."""
        return self._connector.described(record)

    # --- life of the daemon

    @property
    def host_gateways(self) -> tuple[str, ...]:
        """The addresses that `host-gateway` means to whoever asks for no network of their own."""
        return self._connector.gateways_of_host()

    def restored(self) -> None:
        """The engine is there: soon begins what can wait, sandboxes ahead of need and a look at the rules of others."""
        self._tasks.spawn(self._look_ahead(), "look ahead")

    async def _look_ahead(self) -> None:
        await asyncio.sleep(_FIRST_ANSWERS)
        for live in self._roster.by_name.values():
            if live.bridged:
                live.driver.warm_up()
        for warning in await self.warnings():
            log.warning("%s", warning.removeprefix("WARNING: "))

    def reload(self) -> None:
        """Write the firewall's rules again, in case somebody has removed some."""
        self._tasks.spawn(self._guardian.restore(), "write firewall rules")

    async def close(self, remove: bool) -> None:
        """Leave the host; `remove` says that no container runs: then nothing of ours stays there, unless ports of the
        host lead to tasks on others."""
        await self._tasks.join()
        await self._guardian.close()
        if "_names" in self.__dict__:
            self._names.close()
        self._ports.close()
        await self._relay.close()
        lives = [live for live in self._roster.by_name.values() if live.bridged]
        serving = self.balancing.leads_elsewhere
        remove = remove and not serving
        # The default bridge stays while any container runs: its rules hold for all networks.
        staying = [live for live in lives if live.members or live.record.builtin or (serving and live.record.ingress)]
        leaving = [live for live in lives if remove or live not in staying]
        await asyncio.gather(*(self.overlays.remove(live.record) for live in leaving))
        await self.overlays.close([live.record for live in lives if live not in leaving])
        await asyncio.gather(*(live.driver.close(remove=live in leaving) for live in lives))
        if remove:
            await self.balancing.remove()
            await asyncio.to_thread(self._firewall.remove)
            with suppress(OSError):
                await asyncio.to_thread(self._base.netns_dir.rmdir)

    async def _restore(self, containers: list[Draft]) -> None:
        records = {network.name: network for network in self._state.records(KIND, Network).values()}
        for name, kind in (("bridge", "bridge"), ("host", "host"), ("none", "null")):
            records.setdefault(name, Network(id=self._new_id(), name=name, driver=kind, created=rfc3339(now_ns())))
        records = {name: replace(network, untold_gateways=[]) for name, network in records.items()}
        records["bridge"] = default_bridge.settled(records["bridge"], self._config)
        if self._config.without_bridge:
            del records["bridge"]
        # What the records of others still name was given back, or is about to be: it may be somebody else's by now.
        drafts = [draft for draft in containers if draft.record.state.status in ("running", "paused")]
        running = [draft.record for draft in drafts]
        unreadable, unreadable_networks = self._state.aside(CONTAINER), self._state.aside(KIND)
        every = list(records.values())
        tunnel = restore.tunnel(self._config)
        await asyncio.to_thread(
            self._drivers.sweep, self._base, tunnel, every, running, unreadable, unreadable_networks
        )
        openings = restore.openings(every, running, self._config, self._base, spare=bool(unreadable))
        drivers = await self._drivers.bridges.open_all(list(openings.values()), self._firewall, self._mended)
        driver_of = dict(zip(openings, drivers, strict=True))
        for name, driver in driver_of.items():
            records[name] = _chosen(records[name], driver)
        await self._state.settle(*(Change(KIND, n.id, msgspec.json.encode(n)) for n in records.values()))
        for name, network in records.items():
            self._roster.by_name[name] = LiveNetwork(network, driver_of.get(name))
        published = [port for draft in drafts for port in self._connector.adopt(draft)]
        await asyncio.to_thread(self._firewall.publish, published)
        await asyncio.to_thread(self._firewall.apply)
        self._guardian.open()
        for draft in drafts:
            try:
                await self._connector.resume(draft)
            except (HuskError, OSError) as error:
                # It may have ended while the daemon was away; whoever restores containers finds out.
                log.debug("network of container %s: %s", draft.id[:12], error)

    def _mended(self) -> None:
        """A bridge is there again, without the addresses of services. Called in a thread."""
        self.overlays.mend()
        self.balancing.balancer.apply()

    def _new_id(self) -> str:
        return os.urandom(32).hex()

    def _publish(self, action: str, network: Network) -> None:
        self._events.publish("network", action, network.id, {"name": network.name, "type": network.driver})


def _chosen(network: Network, driver: BridgeDriver) -> Network:
    """The record with the subnets that its driver has chosen."""
    return replace(
        network,
        subnet=driver.subnet,
        gateway=driver.gateway or network.gateway,
        subnet6=driver.subnet6,
        gateway6=driver.gateway6 or network.gateway6,
    )


def _endpoint_id(record: Container, network: Network) -> str:
    endpoint = record.endpoints.get(network.name)
    return endpoint.endpoint_id[:12] if endpoint else ""
