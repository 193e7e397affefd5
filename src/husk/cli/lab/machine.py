"""This machine, as labs use it: their processes, the addresses that are taken, the daemons of hosts."""

import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path

from husk.cli.lab import used
from husk.cli.lab.holder import is_daemon_of
from husk.cli.lab.layout import PLACES, Lab, LabHost, LabPlaces
from husk.cli.lab.take_back import take_back
from husk.errors import Forbidden
from husk.kernel.process import arguments_of, given

OF_ROOT = "hosts of a lab are root's: run it with sudo"


class LabMachine:
    """This machine. Daemons may take `patience` seconds to start or end, and every `look` seconds is looked."""

    def __init__(self, places: LabPlaces = PLACES, patience: float = 60.0, look: float = 0.1) -> None:
        self.places = places
        self.patience = patience
        self.look = look

    def check_root(self) -> None:
        if os.geteuid() != 0:
            raise Forbidden(OF_ROOT)

    def holders(self, lab: Lab) -> list[int]:
        """List the processes that a lab belongs to: one while it is up."""
        return given([lab.mark])

    def own_interfaces(self) -> Iterable[IPv4Interface]:
        return used.own_interfaces()

    def in_use(self) -> list[IPv4Network]:
        return used.in_use()

    def start(self, lab: Lab) -> None:
        """Start the lab's process, which outlives this one."""
        words = [lab.mark, lab.name, str(lab.size), str(lab.subnet)]
        with lab.log.open("ab") as log:
            subprocess.run(
                [sys.executable, "-m", "husk.cli.lab.holder", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                check=False,
            )

    def take_back(self, lab: Lab) -> None:
        take_back(lab)

    def read(self, path: Path) -> bytes:
        """Read a file of a lab; Forbidden where that is root's alone."""
        try:
            return path.read_bytes()
        except PermissionError:
            raise Forbidden(OF_ROOT) from None

    def with_argument(self, argument: str) -> dict[int, list[bytes]]:
        """The processes that were given an argument, with all of theirs."""
        return {pid: arguments_of(pid) for pid in given([argument])}

    def tell(self, pid: int, signal: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal)

    def dial(self, path: Path) -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.settimeout(5)
            line.connect(str(path))
        except BaseException:
            line.close()
            raise
        return line


def daemons_of(machine: LabMachine, host: LabHost) -> set[int]:
    """The processes that are a host's daemon: none, or one."""
    found = machine.with_argument(str(host.data_root))
    return {pid for pid, arguments in found.items() if is_daemon_of(host, arguments)}


def answers(machine: LabMachine, host: LabHost) -> bool:
    """Return True if the host's daemon answers a ping; Forbidden if it may not be asked."""
    try:
        with machine.dial(host.socket) as line:
            line.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            answer = http.client.HTTPResponse(line)
            answer.begin()
            return answer.status == 200
    except PermissionError:
        raise Forbidden(OF_ROOT) from None
    except (OSError, http.client.HTTPException):
        return False
