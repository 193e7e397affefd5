"""The parts of a lab and their places: names, addresses, directories. Pure."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from typing import NamedTuple

import msgspec

from husk.errors import InvalidParameter, NotFound
from husk.text.documents import MalformedDocument, decode

USUAL_NAME = "husk-lab"
# Addresses for documentation and for measurements: nobody on the internet has them.
SUBNETS = (
    *("198.51.100.0/24", "203.0.113.0/24", "192.0.2.0/24"),
    *(f"198.{18 + number // 256}.{number % 256}.0/24" for number in range(512)),
)
USUAL_SUBNET = SUBNETS[0]
MOST = 50
# Everything of labs is below these, so that no name of a lab leads to what is another program's.
RUN, DATA = Path("/run/husk-labs"), Path("/var/lib/husk-labs")


class LabPlaces(NamedTuple):
    """The directories that labs have theirs in."""

    run: Path = RUN
    data: Path = DATA


PLACES = LabPlaces()
# The first host has the address behind this one of the subnet; the machine itself has the first.
_BEFORE_HOSTS = 10


class LabHost(NamedTuple):
    name: str
    address: IPv4Interface
    data_root: Path
    exec_root: Path
    socket: Path

    @property
    def docker_host(self) -> str:
        return f"unix://{self.socket}"


class Lab(NamedTuple):
    """`name` is that of the interface on this machine, too, and of the directories below its places."""

    name: str
    size: int
    subnet: IPv4Network
    places: LabPlaces = PLACES

    @property
    def run(self) -> Path:
        return self.places.run / self.name

    @property
    def data(self) -> Path:
        return self.places.data / self.name

    @property
    def record(self) -> Path:
        return self.run / "lab.json"

    @property
    def log(self) -> Path:
        return self.run / "log"

    def wish(self, host: LabHost) -> Path:
        """A file that is there while somebody wants the host's daemon to be started."""
        return self.run / f"{host.name}.start"

    def host(self, name: str) -> LabHost:
        for host in self.hosts:
            if host.name == name:
                return host
        raise NotFound(f"the lab {self.name} has no host {name}")

    @property
    def mark(self) -> str:
        """The argument by which its process is known."""
        return f"--lab={self.run}"

    @property
    def own_address(self) -> IPv4Interface:
        """Of this machine."""
        return IPv4Interface((self.subnet[1], self.subnet.prefixlen))

    @property
    def hosts(self) -> list[LabHost]:
        return [self._host(number) for number in range(1, self.size + 1)]

    def _host(self, number: int) -> LabHost:
        name = f"host{number}"
        address = IPv4Interface((self.subnet[_BEFORE_HOSTS + number], self.subnet.prefixlen))
        return LabHost(name, address, self.data / name, self.run / name, self.run / f"{name}.sock")


class _Record(msgspec.Struct, rename="pascal"):
    hosts: int
    subnet: str


def planned(name: str, count: int, subnet: str, places: LabPlaces = PLACES) -> Lab:
    """InvalidParameter for what cannot be."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,14}", name):
        raise InvalidParameter(f"a lab cannot be called {name!r}: a letter, then letters, digits and dashes, 15 in all")
    if not 1 <= count <= MOST:
        raise InvalidParameter(f"a lab has 1 to {MOST} hosts")
    try:
        network = IPv4Network(subnet)
    except ValueError as error:
        raise InvalidParameter(f"--subnet {subnet}: {error}") from None
    if network.num_addresses < _BEFORE_HOSTS + count + 2:
        raise InvalidParameter(f"--subnet {subnet} has no room for {count} hosts")
    return Lab(name, count, network, places)


def free(used: Iterable[IPv4Network]) -> str:
    """The first of the usual subnets that has nothing of those in it."""
    taken = list(used)
    for subnet in SUBNETS:
        if not any(each.overlaps(IPv4Network(subnet)) for each in taken):
            return subnet
    raise InvalidParameter("this machine uses all addresses that a lab would take: choose some with --subnet")


def written(lab: Lab) -> bytes:
    return msgspec.json.encode(_Record(lab.size, str(lab.subnet)))


def read(name: str, text: bytes, places: LabPlaces = PLACES) -> Lab:
    """Read the record of a lab that is up, or was; a broken record stands for all that a lab may have."""
    try:
        record = decode(text, _Record)
    except MalformedDocument:
        # Of one that died while it was written: all that could be there.
        return planned(name, MOST, USUAL_SUBNET, places)
    return planned(name, record.hosts, record.subnet, places)
