"""The daemon's own nftables tables, and what they must hold. What the rules say is in `rules`."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from husk.errors import SystemFault
from husk.kernel import conntrack, nfelements, nflisting
from husk.kernel.nfelements import Element
from husk.kernel.nftables import Nftables
from husk.network import integrity
from husk.network.ports import PublishedPort
from husk.network.rules import (
    FAMILIES,
    REMOVE,
    BridgedNetwork,
    bridge_ruleset,
    elements_of,
    network_elements,
    port_prefix,
    ruleset,
    validate_table,
    whole_elements,
)

log = logging.getLogger(__name__)


def _forget(ports: Iterable[PublishedPort]) -> None:
    """Let conversations that go on over UDP find their way anew."""
    numbers = {port.host_port for port in ports if port.protocol == "udp"}
    if not numbers:
        return

    try:
        conntrack.forget_udp(numbers)
    except OSError as error:
        log.warning("running UDP conversations may miss the change of port %s: %s", sorted(numbers), error)


class Firewall:
    """One daemon's tables and what they must hold. The methods block: call them from a thread, from any.

    Until the first `apply` changes are only noted, so that at a start the old table is replaced in one step. From then
    on a change is a few elements; when it fails because somebody has flushed the table, the whole is written again.
    """

    def __init__(self, table: str) -> None:
        self._table = validate_table(table)
        self._nftables = Nftables()
        self._lock = threading.Lock()
        self._networks: dict[str, BridgedNetwork] = {}
        self._ports: dict[PublishedPort, None] = {}
        self._written = False
        # There is an IPv6 table while there is an IPv6 network: a kernel may lack what it needs.
        self._written6 = False
        # A kernel may have no rules for frames.
        self._frames = True
        self._known = integrity.Written(self._table)

    @property
    def table(self) -> str:
        return self._table

    @property
    def port_prefix(self) -> str:
        """The beginning that the names of interfaces that lead to containers must have."""
        return port_prefix(self._table)

    def intact(self) -> bool:
        """Return True if the table is there with all its rules, networks and ports, or was never written."""
        with self._lock:
            if not self._written:
                return True
            if self._frames and not self._known.same("bridge"):
                return False
            return self._intact("ip") and (not self._written6 or self._intact("ip6"))

    def _intact(self, family: str) -> bool:
        expected = whole_elements(self._table, self._networks.values(), self._ports, family)
        try:
            return self._known.same(family) and all(
                nflisting.elements(family, self._table, where) == wanted for where, wanted in expected.items()
            )
        except FileNotFoundError:
            return False

    def apply(self) -> None:
        """Write the whole table, whatever it was before."""
        with self._lock:
            self._write()
            self._written = True

    def add_network(self, network: BridgedNetwork) -> None:
        with self._lock:
            old = self._networks.get(network.interface)
            self._networks[network.interface] = network
            try:
                if old is None and (self._written6 or not network.subnet6):
                    self._change("add", network)
                elif old != network and self._written:
                    self._write()
            except SystemFault:
                # What cannot be written must not keep the others from it.
                if old is None:
                    del self._networks[network.interface]
                raise

    def remove_network(self, interface: str) -> None:
        """Nothing happens when it is not there."""
        with self._lock:
            if (network := self._networks.pop(interface, None)) is not None:
                self._change("delete", network)

    def publish(self, ports: Sequence[PublishedPort]) -> None:
        with self._lock:
            new = [port for port in ports if port not in self._ports]
            self._ports.update(dict.fromkeys(new))
            if new:
                self._change_ports(nfelements.add, new)
                _forget(new)

    def withdraw(self, ports: Sequence[PublishedPort]) -> None:
        """Nothing happens for those that are not published."""
        with self._lock:
            known = [port for port in ports if port in self._ports]
            for port in known:
                del self._ports[port]
            if known:
                self._change_ports(nfelements.delete, known)
                _forget(known)

    def remove(self) -> None:
        """Delete the table; nothing happens when there is none."""
        with self._lock:
            self._networks.clear()
            self._ports.clear()
            self._written = False
            self._nftables.run(REMOVE.format(table=self._table, family="ip"))
            self._remove6()
            with suppress(SystemFault):
                self._nftables.run(REMOVE.format(table=self._table, family="bridge"))

    def _change(self, verb: str, network: BridgedNetwork) -> None:
        if not self._written:
            return
        families = FAMILIES if self._written6 else FAMILIES[:1]
        commands = "".join(network_elements(verb, self._table, network, family) for family in families)
        if not commands:
            return
        try:
            self._nftables.run(commands)
        except SystemFault:
            self._write()

    def _change_ports(self, change: Callable[[Sequence[Element]], None], ports: Sequence[PublishedPort]) -> None:
        present = FAMILIES if self._written6 else FAMILIES[:1]
        elements = [element for element in elements_of(self._table, ports) if element.family in present]
        if not self._written or not elements:
            return
        try:
            change(elements)
        except OSError as error:
            log.debug("the rules are written anew: %s", error)
            self._write()

    def _write(self) -> None:
        """All in one transaction."""
        networks = list(self._networks.values())
        packets, frames = ruleset(self._table, networks, self._ports), bridge_ruleset(self._table)
        with6 = any(network.subnet6 for network in networks)
        stale6 = ""
        if with6:
            packets += ruleset(self._table, networks, self._ports, "ip6")
        elif self._written6 or not self._written:
            # It may be that of an earlier daemon.
            stale6 = REMOVE.format(table=self._table, family="ip6")
        try:
            # A transaction lasts as long as the kernel needs to be sure that no packet is among the old rules: a start
            # waits once, not three times.
            self._nftables.run(packets + stale6 + frames)
            self._written6, self._frames = with6, True
        except SystemFault:
            frames = self._write_apart(packets, with6, bool(stale6), frames)
        self._known.note(packets + frames)

    def _write_apart(self, packets: str, with6: bool, stale6: bool, frames: str) -> str:
        """Write all in turn: what a kernel lacks must not keep it from the rest. Return the rules of frames, if any."""
        self._nftables.run(packets)
        if with6:
            self._written6 = True
        elif stale6:
            self._remove6()
        return self._write_frames(frames)

    def _write_frames(self, commands: str) -> str:
        try:
            self._nftables.run(commands)
        except SystemFault as error:
            if self._frames:
                log.warning("what containers say as routers or DHCP servers is heard on bridges: %s", error)
            self._frames = False
            return ""
        self._frames = True
        return commands

    def _remove6(self) -> None:
        with suppress(SystemFault):
            self._nftables.run(REMOVE.format(table=self._table, family="ip6"))
        self._written6 = False
