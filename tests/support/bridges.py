"""A bridge driver as the engine opens it, and a look into its sandboxes and at what it leaves on the host."""

import asyncio
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Interface
from pathlib import Path

from husk.kernel import namespaces
from husk.network import sandbox
from husk.network.bridge import BridgeDriver
from husk.network.firewall import Firewall
from husk.network.sandbox import Lease
from husk.network.settings import BridgeSettings

# Addresses that are reserved for documentation: nothing real is ever reached.
HOST_OUTSIDE = IPv4Interface("198.51.100.1/24")
OUTSIDE = IPv4Interface("198.51.100.2/24")
TABLE = "husk-test"


async def open_driver(settings: BridgeSettings, subnet: str | None, leases: list[Lease]) -> BridgeDriver:
    """As the engine does it at its start, with one network."""
    if settings.netns_dir.exists():
        sandbox.sweep(settings.netns_dir, [lease.sandbox_path for lease in leases])
    firewall = Firewall(settings.owner)
    driver = await BridgeDriver.open(settings, subnet, leases, firewall)
    firewall.apply()
    return driver


def run_inside(sandbox: str | Path, *command: str) -> str:
    """Return the output of a busybox command inside the sandbox."""
    arguments = ["nsenter", f"--net={sandbox}", "busybox", *command]
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


def pings(sandbox: str | Path, address: str, seconds: int = 5) -> bool:
    """Tell if an answer comes; this waits longer than the second after which the kernel asks again for a neighbour's
    MAC."""
    try:
        run_inside(sandbox, "ping", "-c", "1", "-W", str(seconds), address)
    except subprocess.CalledProcessError:
        return False
    return True


@contextmanager
def process_inside(sandbox: str) -> Iterator[None]:
    """A process that stays in the sandbox's namespace."""
    # Its output says that it has arrived there.
    command = ["nsenter", f"--net={sandbox}", "busybox", "sh", "-c", "echo here; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def udp_socket(sandbox: str | Path, address: str, port: int = 0) -> socket.socket:
    """A socket that lives in the sandbox, used from here."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, port))
        made.settimeout(5)
        return made

    return namespaces.run_inside(Path(sandbox), make)


def links() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def veths() -> set[str]:
    return {name for name in links() if name.startswith("veth")}


def sandboxes(settings: BridgeSettings) -> set[str]:
    return {str(path) for path in settings.netns_dir.iterdir()}


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.01)
