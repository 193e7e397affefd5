"""Names on the networks of a container: the addresses they stand for, and the service that answers.

A container knows the members of its own networks: by name, id, host name and alias, each also with the network's name
behind it, and under the aliases of its own links. An alias that several have gets all their addresses, in any order.
"""

import os
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

from husk.engine.model.container import TASK_LABEL, Container, Draft, Endpoint
from husk.engine.model.events import Event, Events
from husk.engine.networks.endpoints import leads_out, parse_links
from husk.engine.networks.live import LiveNetwork, Roster
from husk.network import dns
from husk.network.acceptor import Quota
from husk.network.host import name_servers
from husk.network.resolver import Resolver

Address = IPv4Address | IPv6Address

_FALLBACK = ("8.8.8.8", "8.8.4.4")


class NameService:
    """The resolvers of the running containers on networks that resolve names."""

    def __init__(self, roster: Roster, events: Events) -> None:
        self._roster = roster
        events.observe(self._renamed)
        # Of all descriptors of the daemon a quarter, at most so many; for each container an eighth of that.
        self._quota = Quota.share(4, 4096, 8)
        self._resolvers: dict[str, Resolver] = {}

    async def serve(self, draft: Draft) -> None:
        """Resolve names for a container from now on; nothing happens when that is so already."""
        if draft.id in self._resolvers:
            return
        resolver = Resolver(
            lambda query: self.answer(draft.record, query), lambda: servers(draft.record), self._quota, draft.id
        )
        self._resolvers[draft.id] = resolver
        try:
            await resolver.open(draft.record.sandbox_path)
        except BaseException:
            self.stop(draft.id)
            raise

    def stop(self, container_id: str) -> None:
        """Nothing happens when it is not served."""
        if (resolver := self._resolvers.pop(container_id, None)) is not None:
            resolver.close()

    def close(self) -> None:
        for container_id in list(self._resolvers):
            self.stop(container_id)

    def _renamed(self, event: Event) -> None:
        if event.type == "container" and event.action == "rename":
            for live in self._roster.by_name.values():
                if (member := live.members.get(event.actor_id)) is not None:
                    live.renamed(member)

    def answer(self, record: Container, query: dns.DnsQuery) -> bytes | None:
        """Answer by what the container's own networks know; None when others must be asked."""
        networks = self._networks(record)
        if query.kind == dns.PTR:
            address = dns.reversed_address(query.name)
            found = names_of(networks, address) if address else []
            try:
                return dns.names(query, found) if found else None
            except dns.MalformedQuestion:
                # A container's name may be longer than DNS allows.
                return dns.failure(query, dns.NO_SUCH_NAME)
        addresses = addresses_of(record, networks, query.name, self._roster.reached)
        if addresses is None:
            return None
        addresses.sort(key=lambda _: os.urandom(4))
        # The name exists whatever is asked of it: no other server may say that it does not.
        return dns.addresses(query, addresses)

    def _networks(self, record: Container) -> list[LiveNetwork]:
        lives = (self._roster.by_name.get(name) for name in record.endpoints)
        return [live for live in lives if live is not None and live.record.resolves_names]


def addresses_of(
    record: Container, networks: list[LiveNetwork], name: str, reached: Callable[[str], bool] = lambda _: True
) -> list[Address] | None:
    """The addresses of a name as one container sees it; None when no network of its knows the name. Of services' tasks
    those that are `reached` are told, as with Docker."""
    for live in networks:
        links = parse_links(record.endpoints[live.record.name].request.links)
        aliases = {alias.lower(): target for alias, target in links.items()}
        suffix = "." + live.record.name.lower()
        for candidate in (name, name.removesuffix(suffix)) if name.endswith(suffix) else (name,):
            found = list(live.services.get(candidate, ())) or _members(live, candidate, reached)
            found = found if candidate in live.services else [*found, *live.elsewhere.get(candidate, {}).values()]
            if candidate in aliases:
                found = _linked(live, aliases[candidate])
            if found:
                return found
    return None


def names_of(networks: list[LiveNetwork], address: Address) -> list[str]:
    text = str(address)
    for live in networks:
        network = live.record.name
        for member in (draft.record for draft in live.members.values()):
            endpoint = member.endpoints.get(network)
            if endpoint is not None and text in (endpoint.ip_address, endpoint.ip6_address) and member.name:
                return [f"{member.name}.{live.record.name}"]
    return []


def servers(record: Container) -> list[str]:
    """Return the servers to ask for other names; none for a container that reaches no other network itself."""
    if not leads_out(record):
        return []
    if record.host_config.dns:
        return record.host_config.dns
    return name_servers() or list(_FALLBACK)


def _members(live: LiveNetwork, name: str, reached: Callable[[str], bool]) -> list[Address]:
    network = live.record.name
    return [
        address
        for member in live.called(name)
        if (endpoint := member.endpoints.get(network)) is not None
        and (not (task := member.config.labels.get(TASK_LABEL)) or reached(task))
        for address in _addresses(endpoint)
    ]


def _linked(live: LiveNetwork, target: str) -> list[Address]:
    return [
        address
        for member in (draft.record for draft in live.members.values())
        if (target == member.name or member.id.startswith(target))
        and (endpoint := member.endpoints.get(live.record.name)) is not None
        for address in _addresses(endpoint)
    ]


def _addresses(endpoint: Endpoint) -> list[Address]:
    found: list[Address] = [IPv4Address(endpoint.ip_address)] if endpoint.ip_address else []
    return [*found, IPv6Address(endpoint.ip6_address)] if endpoint.ip6_address else found
