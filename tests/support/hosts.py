"""Several hosts on one machine: network namespaces that are joined by a switch, each with room for a daemon of its own.

    with Hosts(3) as hosts:
        first, second, third = hosts
        daemon = first.daemon()          # a real `husk serve` there, started; its directories and bridge are its own
        hosts.cut(first, second)         # no frame comes from the first to the second any more; the other way they do
        hosts.mend()

Hosts are `192.0.2.1`, `192.0.2.2`, ..., (addresses for documentation), on `eth0`, and reach one another and nothing
else. The namespaces are held by descriptors of this process: whatever becomes of it, they end with it, and take
interfaces, tables and rules along. Only daemons have to be ended, which `close` does, the last one first.
"""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path
from typing import Any, TypeVar

from husk.cli.lab import wires
from husk.cli.lab.wires import UPLINK as UPLINK
from husk.cli.lab.wires import Switch
from tests.support.daemon import Daemon
from tests.support.litter import SETTLE_DEADLINE
from tests.support.server import Server

T = TypeVar("T")

_CUTS = """\
add table bridge cuts
add set bridge cuts gone { type ifname . ifname; }
flush set bridge cuts gone
add chain bridge cuts forward { type filter hook forward priority 0; policy accept; }
flush chain bridge cuts forward
add rule bridge cuts forward iifname . oifname @gone drop
"""


class Host:
    """One host: a network namespace with an interface to the switch."""

    def __init__(self, number: int) -> None:
        self.name = f"host{number}"
        self.address = f"192.0.2.{number}"
        self.address6 = f"2001:db8:ffff::{number}"
        self.port = f"port{number}"
        self._descriptor = wires.new_namespace()
        self._daemons: list[HostDaemon] = []

    @property
    def namespace(self) -> Path:
        """A path by which other processes find it, while this one lives."""
        return wires.path_of(self._descriptor)

    @property
    def enter(self) -> tuple[str, ...]:
        """In front of a command that is to run here; the command takes the place of this one."""
        return ("nsenter", f"--net={self.namespace}", "--")

    def inside(self, work: Callable[[], T]) -> T:
        """Call it in a thread that is here."""
        return wires.inside(self._descriptor, work)

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command here and return its output."""
        return subprocess.run([*self.enter, *command], capture_output=True, text=True, check=check).stdout

    def daemon(self, *arguments: str, start: bool = True, **options: Any) -> "HostDaemon":
        """A daemon here, of which there may be several; it ends with the hosts, or before. It has no way outside: bring
        images as archives."""
        made = HostDaemon(self, *arguments, **options)
        self._daemons.append(made)
        if start:
            made.start()
        return made

    def links(self) -> set[str]:
        return self.inside(lambda: {name for _, name in socket.if_nameindex()})

    def left(self) -> list[str]:
        """Return what is here that a new host has not: interfaces, firewall tables."""
        found = [f"interface {name}" for name in sorted(self.links() - {"lo", UPLINK})]
        found += [f"firewall: {line}" for line in self.run("nft", "list", "tables").splitlines()]
        return found

    def connect(self, switch: Switch) -> None:
        """Be joined to the switch."""
        addresses: list[wires.Interface] = [IPv4Interface(f"{self.address}/24"), IPv6Interface(f"{self.address6}/64")]
        switch.plug(self.port, self._descriptor, UPLINK, addresses)

    def close(self) -> list[str]:
        """End its daemons, and the host; what the daemons should have cleaned themselves is returned."""
        problems = []
        while self._daemons:
            problems += self._daemons.pop().close()
        os.close(self._descriptor)
        return problems


class HostDaemon(Daemon):
    """A daemon on one of the hosts. `start`, `stop`, `kill9`, `restart` and all else are those of any daemon."""

    def __init__(self, host: Host, *arguments: str, **options: Any) -> None:
        super().__init__(*arguments, wrapper=(*host.enter, *options.pop("wrapper", ())), **options)
        self.where = host
        self._closed = False

    def close(self) -> list[str]:
        """As for any daemon; interfaces and tables are looked for where it was. Safe to call twice."""
        if self._closed:
            return []
        self._closed = True
        others = [other for other in self.where._daemons if other is not self and not other._closed]
        problems = super().close()
        deadline = time.monotonic() + SETTLE_DEADLINE
        while not others and (left := self.where.left()):
            if time.monotonic() > deadline:
                return problems + [f"{self.where.name}: {line}" for line in left]
            time.sleep(0.02)
        return problems


class Hosts(Server, Sequence[Host]):
    """As many hosts as wanted, and the switch between them."""

    def __init__(self, count: int, mtu: int = 1500) -> None:
        self._count, self._mtu = count, mtu
        self._hosts: list[Host] = []
        self._switch: Switch | None = None
        self._cut: set[tuple[str, str]] = set()

    def __getitem__(self, number: Any) -> Any:
        return self._hosts[number]

    def __len__(self) -> int:
        return len(self._hosts)

    # -- life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._switch = Switch(self._mtu)
        for number in range(1, self._count + 1):
            self._hosts.append(Host(number))
            self._hosts[-1].connect(self._switch)

    def close(self) -> list[str]:
        """End all daemons and hosts; what they should have cleaned themselves is returned."""
        self.mend()
        hosts, self._hosts = self._hosts, []
        with ThreadPoolExecutor(max(1, len(hosts))) as closing:
            problems = [line for lines in closing.map(Host.close, hosts) for line in lines]
        if self._switch is not None:
            self._switch.close()
            self._switch = None
        return problems

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        left = self.close()
        if left and error is None:
            raise AssertionError("daemons left on their hosts, or did:\n  " + "\n  ".join(left))

    # -- faults ----------------------------------------------------------------------------------------------------

    def cut(self, sender: Host, receiver: Host, both: bool = False) -> None:
        """From now on no frame of the sender arrives at the receiver; with `both`, none of the receiver's either."""
        self._cut.add((sender.port, receiver.port))
        if both:
            self._cut.add((receiver.port, sender.port))
        self._apply()

    def isolate(self, host: Host) -> None:
        """Cut it off from all others, both ways."""
        for other in self._hosts:
            if other is not host:
                self._cut |= {(host.port, other.port), (other.port, host.port)}
        self._apply()

    def divide(self, *parts: Sequence[Host]) -> None:
        """Hosts of one part reach none of another part."""
        for part in parts:
            for other in parts:
                if part is not other:
                    self._cut |= {(sender.port, receiver.port) for sender in part for receiver in other}
        self._apply()

    def mend(self, sender: Host | None = None, receiver: Host | None = None) -> None:
        """Everything arrives again; or all that the sender sends, or all that the receiver gets."""
        self._cut = {
            (source, target)
            for source, target in self._cut
            if (sender is not None and source != sender.port) or (receiver is not None and target != receiver.port)
        }
        self._apply()

    def _apply(self) -> None:
        if self._switch is None:
            return
        pairs = "".join(f'add element bridge cuts gone {{ "{a}" . "{b}" }}\n' for a, b in sorted(self._cut))
        command = ["nsenter", f"--net={wires.path_of(self._switch.descriptor)}", "nft", "-f", "-"]
        subprocess.run(command, input=_CUTS + pairs, text=True, check=True, capture_output=True)

    # -- looking ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def listening(self) -> Iterator[list[bytes]]:
        """All frames on the wire while the block runs, as the switch sees them; the list is filled behind it."""

        def listen() -> socket.socket:
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            made.setblocking(False)
            return made

        frames: list[bytes] = []
        assert self._switch is not None
        with wires.inside(self._switch.descriptor, listen) as ear:
            yield frames
            with contextlib.suppress(BlockingIOError):
                while True:
                    frames.append(ear.recv(1 << 16))
