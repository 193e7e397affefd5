"""A network while the daemon runs: its record, its driver, and the running containers on it."""

from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import IPv4Address, IPv6Address

import msgspec
from msgspec.structs import replace

from husk.engine.model.container import Container, Draft
from husk.engine.model.network import Network
from husk.engine.networks.endpoints import dns_names
from husk.errors import InvalidParameter, NotFound
from husk.network.bridge import BridgeDriver
from husk.storage.state.store import Change, StateStore

KIND = "network"


class LiveNetwork:
    """A network as it lives in this daemon. Its record is frozen; another one takes its place when that is written."""

    def __init__(self, record: Network, driver: BridgeDriver | None = None) -> None:
        self.record = record
        self._driver = driver
        # By container id; a member is there from before it gets its address until after it gave it back.
        self.members: dict[str, Draft] = {}
        # Those of them that name others by links, which every newcomer asks for.
        self.linking: dict[str, Draft] = {}
        # The members by what they are called, in small letters, once somebody has asked for a name: a container asks
        # as often as it likes, and most of what it asks for is nobody's here.
        self._called: dict[str, dict[str, Draft]] | None = None
        self._names: dict[str, list[str]] = {}
        # Names that stand for virtual addresses, which services have.
        self.services: dict[str, list[IPv4Address | IPv6Address]] = {}
        # The same for endpoints on other hosts, by name and by the address as a text.
        self.elsewhere: Mapping[str, Mapping[str, IPv4Address | IPv6Address]] = {}

    @property
    def bridged(self) -> bool:
        return self._driver is not None

    @property
    def driver(self) -> BridgeDriver:
        if self._driver is None:
            raise TypeError(f"network {self.record.name} has no bridge")
        return self._driver

    def enter(self, draft: Draft) -> None:
        """It is a member from now on."""
        self.members[draft.id] = draft
        if draft.record.host_config.links:
            self.linking[draft.id] = draft
        self.renamed(draft)

    def exit(self, container_id: str) -> bool:
        """It is none any more; whether it was one."""
        self.linking.pop(container_id, None)
        self._uncall(container_id)
        return self.members.pop(container_id, None) is not None

    def called(self, name: str) -> list[Container]:
        """The members with this name, which is in small letters. What it costs does not depend on the others."""
        if self._called is None:
            self._called = {}
            for draft in self.members.values():
                self._call(draft)
        return [draft.record for draft in self._called.get(name, {}).values()]

    def renamed(self, draft: Draft) -> None:
        """A member has other names now; nothing happens for anybody else."""
        self._uncall(draft.id)
        if self._called is not None and draft.id in self.members:
            self._call(draft)

    def _call(self, draft: Draft) -> None:
        record = draft.record
        if self._called is None or (endpoint := record.endpoints.get(self.record.name)) is None:
            return
        self._names[record.id] = names = [name.lower() for name in dns_names(record, endpoint)]
        for name in names:
            self._called.setdefault(name, {})[record.id] = draft

    def _uncall(self, id: str) -> None:
        for name in self._names.pop(id, ()):
            if self._called is not None and (found := self._called.get(name)) is not None:
                found.pop(id, None)
                if not found:
                    del self._called[name]

    def arrive(self, driver: BridgeDriver) -> None:
        """A network that hosts share is on this one now."""
        self._driver = driver

    def depart(self) -> None:
        """It is on others only: services have no addresses on this host any more, and it has no record here."""
        self._driver = None
        self.elsewhere = {}
        self.record = replace(self.record, service_addresses=[])

    async def save(self, state: StateStore, record: Network) -> None:
        """Write another record in the place of this one, or fail; it is believed when it is written."""
        await state.commit(_written(record), then=partial(self._believe, record))

    async def settle(self, state: StateStore, record: Network) -> None:
        """Write, as `save`, what has happened already. It is not refused."""
        await state.settle(_written(record), then=partial(self._believe, record))

    def _believe(self, record: Network) -> None:
        self.record = record


def _written(record: Network) -> Change:
    return Change(KIND, record.id, msgspec.json.encode(record))


def _any(_: str) -> bool:
    """Return True for any task, where nobody has told what is known of tasks."""
    return True


class Roster:
    """The networks that exist, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, LiveNetwork] = {}
        # Whether names lead to a task of a service, by its id: one that runs, is healthy, and is to go on.
        self.reached: Callable[[str], bool] = _any

    @property
    def bridge(self) -> LiveNetwork | None:
        """The default network; None where the settings want none."""
        return self.by_name.get("bridge")

    def find(self, reference: str) -> LiveNetwork:
        """By full id, name, or unique leading part of an id."""
        for live in self.by_name.values():
            if reference in (live.record.id, live.record.name):
                return live
        matches = [live for live in self.by_name.values() if reference and live.record.id.startswith(reference)]
        if len(matches) > 1:
            raise InvalidParameter(
                f"network {reference} is ambiguous ({len(matches)} matches found based on ID prefix)"
            )
        if not matches:
            raise NotFound(f"network {reference} not found")
        return matches[0]
