"""The litter of a daemon on the host: processes, mounts, interfaces, firewall tables and cgroups that carry its names.

Everything a daemon makes is found by name or path, so that other daemons on the host (parallel tests, a developer's
own) do not matter. Interfaces of containers have random names: they are noted while their bridge still tells whose they
are.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from husk.config import Config
from husk.kernel import cgroups, mount

# A process that was told to end, and the kernel's own clean-up after it, get this long before they count as left over.
SETTLE_DEADLINE = 20.0


class Traces:
    """The traces of one daemon on the host."""

    def __init__(self, config: Config, directory: Path) -> None:
        self._config = config
        self._directory = str(directory)
        self._interfaces: set[str] = set()

    def remember(self) -> None:
        """Note the interfaces on the daemon's bridges; call it before the daemon ends."""
        self._interfaces.update(self._ports())

    def clean(self) -> list[str]:
        """Wait for the host to settle; what is left then, one line each, and it is removed."""
        deadline = time.monotonic() + SETTLE_DEADLINE
        while (left := list(self._left())) and time.monotonic() < deadline:
            time.sleep(0.02)
        if left:
            self._remove()
        return left

    def settle(self, running: int) -> list[str]:
        """Return the litter of containers while the daemon runs on with this pid and none of them exists any more."""
        deadline = time.monotonic() + SETTLE_DEADLINE
        while (left := list(self._left_by_containers(running))) and time.monotonic() < deadline:
            time.sleep(0.02)
        return left

    def _left_by_containers(self, running: int) -> Iterator[str]:
        yield from (f"process {pid}: {command}" for pid, command in self._processes().items() if pid != running)
        # Network namespaces stay: the daemon keeps some ready for the next containers.
        kept = f"{self._config.exec_root}/netns/"
        yield from (f"mount {path}" for path in mount.mounts_below(self._directory) if not path.startswith(kept))
        for parent in self._cgroups():
            yield from (f"cgroup {entry.path}" for entry in os.scandir(parent) if entry.is_dir())

    def _left(self) -> Iterator[str]:
        yield from (f"process {pid}: {command}" for pid, command in self._processes().items())
        yield from (f"mount {target}" for target in mount.mounts_below(self._directory))
        yield from (f"interface {name}" for name in self._links())
        yield from (f"nftables table {table}" for table in self._tables())
        yield from (f"cgroup {path}" for path in self._cgroups())

    def _processes(self) -> dict[int, str]:
        """Return the processes that have the daemon's directory in their command line or are in one of its cgroups."""
        found = {}
        # WireGuard's is known by its interface alone.
        mark, tunnel = os.fsencode(self._directory + "/"), f"\0wg-{self._config.instance}\0".encode()
        inside = self._members()
        for entry in os.listdir("/proc"):
            if not entry.isdecimal():
                continue
            with contextlib.suppress(OSError):
                command = _read(f"/proc/{entry}/cmdline")
                if mark not in command and tunnel not in command and int(entry) not in inside:
                    continue
                state = _read(f"/proc/{entry}/stat").rpartition(b")")[2].split()[0]
                if state != b"Z":
                    found[int(entry)] = command.replace(b"\0", b" ").decode(errors="replace")[:200]
        return found

    def _members(self) -> set[int]:
        """The processes in the daemon's cgroups. Asked of them, not of every process: this runs after every test."""
        found: set[int] = set()
        for parent in self._cgroups():
            for directory, _, _ in os.walk(parent):
                with contextlib.suppress(OSError):
                    found.update(map(int, _read(f"{directory}/cgroup.procs").split()))
        return found

    def bridges(self) -> set[str]:
        """The bridges of the daemon's networks: the default one, and those that carry its mark."""
        found = {self._config.bridge_name}
        for alias in Path("/sys/class/net").glob("*/ifalias"):
            with contextlib.suppress(OSError):
                if alias.read_text().strip() == f"husk bridge of {self._config.nft_table}":
                    found.add(alias.parent.name)
        return found

    def _ports(self) -> set[str]:
        found: set[str] = set()
        for bridge in self.bridges():
            with contextlib.suppress(OSError):
                found.update(os.listdir(f"/sys/class/net/{bridge}/brif"))
        return found

    def _links(self) -> list[str]:
        names = {*self.bridges(), *self._interfaces, *self._ports(), f"wg-{self._config.instance}"}
        return sorted(name for name in names if os.path.exists(f"/sys/class/net/{name}"))

    def _tables(self) -> list[str]:
        listed = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True).stdout
        tables = (line.removeprefix("table ") for line in listed.splitlines())
        ours = [self._config.nft_table + suffix for suffix in ("", "-lb", "-wg")]
        return [table for table in tables if table.split()[-1:] and table.split()[-1] in ours]

    def _cgroups(self) -> list[str]:
        name = self._config.cgroup_parent.lstrip("/")
        return [str(tree.path / name) for tree in cgroups.hierarchies() if (tree.path / name).is_dir()]

    def _remove(self) -> None:
        """Give the next test a clean host."""
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(Exception):
            cgroups.kill_all(self._config.cgroup_parent)
        for target in mount.mounts_below(self._directory):
            with contextlib.suppress(OSError):
                mount.unmount(target, detach=True)
        for name in self._links():
            subprocess.run(["ip", "link", "delete", name], capture_output=True)
        for table in self._tables():
            subprocess.run(["nft", "delete", "table", *table.split()], capture_output=True)
        with contextlib.suppress(Exception):
            cgroups.remove(self._config.cgroup_parent)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()
