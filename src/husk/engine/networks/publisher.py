"""The published ports of running containers: held on the host, and led to the endpoint that is reached from there.

Addresses and ports on their way back: the end of a container is known before it has given back what it had.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from husk.engine.model.container import Container, Draft, Endpoint
from husk.engine.networks import port_requests
from husk.engine.networks.endpoints import gateway6_endpoint, gateway_endpoint
from husk.engine.networks.live import LiveNetwork, Roster
from husk.errors import HuskError
from husk.network.firewall import Firewall
from husk.network.ports import HostPorts, PortRequest, PortTaken, PortTarget, PublishedPort, retargeted

# Ports that are given back in one turn of the event loop: some ten milliseconds.
_AT_ONCE = 100
T = TypeVar("T")
_PATIENCE = 5.0


class Departures:
    """The containers that give back what they had."""

    def __init__(self) -> None:
        self._leaving: set[asyncio.Future[None]] = set()

    @contextmanager
    def departing(self) -> Iterator[None]:
        """While the block lasts, something is on its way back."""
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leaving.add(gone)
        try:
            yield
        finally:
            self._leaving.discard(gone)
            gone.set_result(None)

    async def retry(self, refusal: type[HuskError], attempt: Callable[[], Awaitable[T]]) -> T:
        """Try again, once, what is refused because another one has it, if there is something on its way back."""
        try:
            return await attempt()
        except refusal:
            if not self._leaving:
                raise
            await asyncio.wait(self._leaving, timeout=_PATIENCE)
            return await attempt()


class NoConnectivity(HuskError):
    """A container cannot be put on its networks as it asks."""


class Publisher:
    """Publishing of ports: they are in the container's draft at once, so `withdraw` can always give them back."""

    def __init__(self, roster: Roster, firewall: Firewall, ports: HostPorts, departures: Departures) -> None:
        self._roster = roster
        self._firewall = firewall
        self._ports = ports
        self._departures = departures

    def adopt(self, draft: Draft) -> Sequence[PublishedPort]:
        """Hold the ports of a running container of an earlier daemon again; they are returned."""
        # A crash may have come between a change of networks and that of the ports; `publish` finds others.
        draft.change(published=retargeted(draft.record.published, self._target(draft.record)) or [])
        self._ports.hold_again(draft.record.published)
        return draft.record.published

    async def withdraw(self, draft: Draft) -> None:
        """Safe to call twice."""
        published = draft.record.published
        draft.change(published=[])
        if published:
            try:
                await asyncio.to_thread(self._firewall.withdraw, published)
            finally:
                # The firewall knows of them no more: what it could not write goes with the next that it writes.
                await self._give_back(published)

    async def _give_back(self, ports: Sequence[PublishedPort]) -> None:
        """With turns for others in between; all of them whatever happens."""
        left = list(ports)
        try:
            while len(left) > _AT_ONCE:
                self._ports.give_back(left[:_AT_ONCE])
                del left[:_AT_ONCE]
                await asyncio.sleep(0)
        finally:
            self._ports.give_back(left)

    def _target(self, record: Container) -> PortTarget:
        """Return the target of ports of the host: empty when no network of the container's is reached from there."""
        leading = self._reached(gateway_endpoint(record))
        leading6 = self._reached(gateway6_endpoint(record))
        return PortTarget(
            leading[1].ip_address if leading else "",
            leading6[1].ip6_address if leading6 else "",
            leading is not None and leading[0].record.gateway_modes.ipv4 == "routed",
            leading6 is not None and leading6[0].record.gateway_modes.ipv6 == "routed",
        )

    def _reached(self, endpoint: Endpoint | None) -> tuple[LiveNetwork, Endpoint] | None:
        if endpoint is None or (live := self._roster.by_name.get(endpoint.network_name)) is None:
            return None
        return (live, endpoint) if live.driver.reaches_host else None

    async def publish(self, draft: Draft) -> None:
        record = draft.record
        if not (record.host_config.port_bindings or record.host_config.publish_all_ports):
            return
        reached = self._reached(gateway_endpoint(record)) or self._reached(gateway6_endpoint(record))
        if reached is None:
            return

        live, leading = reached
        binding = live.record.host_binding
        requests = await port_requests.port_requests_aside(record.config, record.host_config, binding)
        try:
            taken = await self._departures.retry(PortTaken, lambda: self._take(requests, self._target(record)))
        except PortTaken as error:
            raise NoConnectivity(
                f"driver failed programming external connectivity on endpoint {record.name} ({leading.endpoint_id}): "
                f"{error.message}"
            ) from error
        draft.change(published=taken)
        await asyncio.to_thread(self._firewall.publish, taken)

    async def _take(self, requests: Sequence[PortRequest], target: PortTarget) -> list[PublishedPort]:
        """All of them or none, with turns for others in between: thousands take a while."""
        taken: list[PublishedPort] = []
        try:
            for _ in self._ports.taking(requests, target, taken):
                await asyncio.sleep(0)
        except BaseException:
            await self._give_back(taken)
            raise
        return taken

    async def move(self, draft: Draft) -> None:
        """The container's networks have changed: let the ports lead to where it is reached now."""
        old = draft.record.published
        if not old:
            await self.publish(draft)
            return
        new = retargeted(old, self._target(draft.record))
        if new == old:
            return
        draft.change(published=new or [])
        await asyncio.to_thread(self._firewall.withdraw, old)
        if new:
            self._ports.retarget(new)
            await asyncio.to_thread(self._firewall.publish, new)
        else:
            self._ports.give_back(old)
            await self.publish(draft)
