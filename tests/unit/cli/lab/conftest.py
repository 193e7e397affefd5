"""A lab of which nothing is made."""

import socket
from collections.abc import Callable
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path

import pytest

from husk.cli.lab.layout import Lab, LabPlaces, planned, written
from husk.cli.lab.machine import OF_ROOT, LabMachine
from husk.errors import Forbidden


class QuietMachine(LabMachine):
    """A machine of directories, on which no process is started and none is told anything."""

    def __init__(self, places: LabPlaces) -> None:
        super().__init__(places, patience=0.2, look=0.01)
        self.root = True
        self.up: list[int] = []
        self.interfaces: list[IPv4Interface] = []
        self.used: list[IPv4Network] = []
        self.started: list[Lab] = []
        self.taken_back: list[Lab] = []
        self.sent: list[tuple[int, int]] = []
        self.refuses = False
        self.on_start: Callable[[Lab], object] = lambda lab: None
        self.on_tell: Callable[[], object] = lambda: None
        self.processes: Callable[[], dict[int, list[bytes]]] = dict

    def check_root(self) -> None:
        if not self.root:
            raise Forbidden(OF_ROOT)

    def holders(self, lab: Lab) -> list[int]:
        return self.up

    def own_interfaces(self) -> list[IPv4Interface]:
        return self.interfaces

    def in_use(self) -> list[IPv4Network]:
        return self.used

    def start(self, lab: Lab) -> None:
        self.started.append(lab)
        self.on_start(lab)

    def take_back(self, lab: Lab) -> None:
        self.taken_back.append(lab)
        self.interfaces.clear()

    def with_argument(self, argument: str) -> dict[int, list[bytes]]:
        return self.processes()

    def tell(self, pid: int, signal: int) -> None:
        self.sent.append((pid, signal))
        self.on_tell()

    def dial(self, path: Path) -> socket.socket:
        if self.refuses:
            raise PermissionError
        return super().dial(path)


@pytest.fixture
def machine(tmp_path: Path) -> QuietMachine:
    return QuietMachine(LabPlaces(tmp_path / "runs", tmp_path / "datas"))


@pytest.fixture
def lab(machine: QuietMachine) -> Lab:
    return planned("lab", 2, "10.99.0.0/24", machine.places)


@pytest.fixture
def known(lab: Lab) -> Lab:
    """A lab that has a record, and a log."""
    lab.run.mkdir(parents=True)
    lab.record.write_bytes(written(lab))
    lab.log.touch()
    return lab
