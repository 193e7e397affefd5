"""The rules of the device in the kernel: written, looked at, written again when somebody has removed them."""

import threading
from collections.abc import Callable
from contextlib import suppress

from husk.errors import SystemFault
from husk.kernel import nflisting
from husk.kernel.nftables import Nftables
from husk.network import integrity
from husk.network.wireguard import rules


def _run(commands: str) -> None:
    Nftables().run(commands)


class Fence:
    """`guardian.Guarded`, while there is a device. The methods block: call them from a thread, from any."""

    def __init__(
        self, table: str, run: Callable[[str], object] = _run, shape: integrity.ReadShape = nflisting.shape
    ) -> None:
        """`run` writes rules, `shape` reads what is there: those of the kernel."""
        self._run = run
        self._table = table
        self._lock = threading.Lock()
        # Nothing before the first and after the last.
        self._commands = ""
        self._known = integrity.Written(table, shape)

    @property
    def table(self) -> str:
        return self._table

    def put(self, interface: str, own: str, port: int) -> None:
        """As `rules.ruleset`."""
        with self._lock:
            self._commands = rules.ruleset(self._table, interface, own, port)
            self._write()

    def intact(self) -> bool:
        with self._lock:
            return not self._commands or self._known.same("ip6")

    def apply(self) -> None:
        with self._lock:
            if self._commands:
                self._write()

    def remove(self) -> None:
        """Safe to call twice."""
        with self._lock:
            self._commands = ""
            with suppress(SystemFault):
                self._run(rules.removal(self._table))

    def _write(self) -> None:
        self._run(self._commands)
        self._known.note(self._commands)
