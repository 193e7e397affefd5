"""Traffic over a host's interface, by port: counters of nftables, so no program has to keep up with the packets.

    with Wire(daemon.where.enter, {"etcd's members": 2380}) as wire:
        before = wire.read()
        …
        per_second = kib_per_second(before, wire.read(), seconds)

Bytes are those of whole frames. What belongs to no port that is named (ARP, for one) is `OTHER`. What programs of the
host say to one another, over its loopback, is counted besides, for the ports that are named for it (`read_local`).
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

OTHER = "other"
TABLE = "husk-bench"
# Before each packet that nftables counts: it begins with the address of the network, a frame with that of the link.
FRAME = 14
LOCAL = "local"
_COUNTER = re.compile(r"([a-z]+)(\d+)")


class Passed(NamedTuple):
    packets: int
    bytes: int


def rules(ports: Mapping[str, int], uplink: str, local: Sequence[int] = ()) -> str:
    """A counter for each port; the names of ports are free text, so counters are named by numbers. `local` are ports on
    the loopback, where each packet goes out and comes in: it is counted once."""
    lines = [f"add table inet {TABLE}", f"delete table inet {TABLE}", f"add table inet {TABLE}"]
    for way, name in (("input", "iifname"), ("output", "oifname")):
        lines.append(f"add chain inet {TABLE} {way} {{ type filter hook {way} priority -300; policy accept; }}")
        for number, port in enumerate(ports.values()):
            counter = f"{way}{number}"
            lines += _counted(way, f'{name} "{uplink}"', port, counter)
    for number, port in enumerate(local):
        lines += _counted("output", 'oifname "lo"', port, f"{LOCAL}{number}")
    return "\n".join(lines) + "\n"


def _counted(way: str, where: str, port: int, counter: str) -> list[str]:
    found = [f"add counter inet {TABLE} {counter}"]
    # A packet from this port to the same one is counted once.
    for sides in (f"th sport {port}", f"th sport != {port} th dport {port}"):
        match = f"{where} meta l4proto {{ tcp, udp }} {sides}"
        found.append(f"add rule inet {TABLE} {way} {match} counter name {counter}")
    return found


def read_counters(
    listing: Mapping[str, Any], ports: Sequence[str], ways: Sequence[str] = ("input", "output")
) -> dict[str, Passed]:
    """These ways together, out of what `nft -j list counters` says."""
    found = {name: Passed(0, 0) for name in ports}
    for entry in listing["nftables"]:
        if (counter := entry.get("counter")) is not None and counter["table"] == TABLE:
            way, number = _COUNTER.findall(counter["name"])[0]
            if way not in ways:
                continue
            name = ports[int(number)]
            packets, size = counter["packets"], counter["bytes"] + counter["packets"] * FRAME
            found[name] = Passed(found[name].packets + packets, found[name].bytes + size)
    return found


def read_interface(text: str, uplink: str) -> Passed:
    """Out of `/proc/net/dev`."""
    [fields] = [line.split(":")[1].split() for line in text.splitlines() if line.strip().startswith(f"{uplink}:")]
    return Passed(int(fields[1]) + int(fields[9]), int(fields[0]) + int(fields[8]))


def with_other(parts: Mapping[str, Passed], whole: Passed) -> dict[str, Passed]:
    packets = whole.packets - sum(part.packets for part in parts.values())
    return {**parts, OTHER: Passed(packets, whole.bytes - sum(part.bytes for part in parts.values()))}


def kib_per_second(before: Mapping[str, Passed], after: Mapping[str, Passed], seconds: float) -> dict[str, float]:
    return {name: (after[name].bytes - before[name].bytes) / seconds / 1024 for name in after}


class Wire:
    """Counts from when the block is entered until it is left; nothing stays behind."""

    def __init__(
        self,
        enter: Sequence[str],
        ports: Mapping[str, int],
        uplink: str = "eth0",
        local: Mapping[str, int] | None = None,
    ) -> None:
        """`enter` is put in front of commands, so that they run on the host; `local` are ports on its loopback."""
        self._enter, self._ports, self._uplink = tuple(enter), dict(ports), uplink
        self._local = dict(local or {})

    def __enter__(self) -> Self:
        self._run("nft", "-f", "-", told=rules(self._ports, self._uplink, list(self._local.values())))
        return self

    def __exit__(self, *_: object) -> None:
        self._run("nft", "delete", "table", "inet", TABLE)

    def read(self) -> dict[str, Passed]:
        whole = read_interface(self._run("cat", "/proc/net/dev"), self._uplink)
        return with_other(read_counters(self._listing(), list(self._ports)), whole)

    def read_local(self) -> dict[str, Passed]:
        return read_counters(self._listing(), list(self._local), (LOCAL,))

    def _listing(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._run("nft", "-j", "list", "counters", "table", "inet", TABLE))
        return found

    def _run(self, *command: str, told: str = "") -> str:
        done = subprocess.run([*self._enter, *command], input=told, capture_output=True, text=True, check=True)
        return done.stdout
