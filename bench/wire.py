"""What goes over a host's interface, by port: counters of nftables, so no program has to keep up with the packets.

    with Wire(daemon.where.enter, {"etcd's members": 2380}) as wire:
        before = wire.read()
        …
        per_second = kib_per_second(before, wire.read(), seconds)

Bytes are those of whole frames. What belongs to no port that is named (ARP, for one) is `OTHER`.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

OTHER = "other"
TABLE = "husk-bench"
# Before each packet that nftables counts: it begins with the address of the network, a frame with that of the link.
FRAME = 14


class Passed(NamedTuple):
    packets: int
    bytes: int


def rules(ports: Mapping[str, int], uplink: str) -> str:
    """A counter for each port; the names of ports are free text, so counters are named by numbers."""
    lines = [f"add table inet {TABLE}", f"delete table inet {TABLE}", f"add table inet {TABLE}"]
    for way, name in (("input", "iifname"), ("output", "oifname")):
        lines.append(f"add chain inet {TABLE} {way} {{ type filter hook {way} priority -300; policy accept; }}")
        for number, port in enumerate(ports.values()):
            counter = f"{way}{number}"
            lines.append(f"add counter inet {TABLE} {counter}")
            # A packet from this port to the same one is counted once.
            for sides in (f"th sport {port}", f"th sport != {port} th dport {port}"):
                match = f'{name} "{uplink}" meta l4proto {{ tcp, udp }} {sides}'
                lines.append(f"add rule inet {TABLE} {way} {match} counter name {counter}")
    return "\n".join(lines) + "\n"


def read_counters(listing: Mapping[str, Any], ports: Sequence[str]) -> dict[str, Passed]:
    """Both ways together, out of what `nft -j list counters` says."""
    found = {name: Passed(0, 0) for name in ports}
    for entry in listing["nftables"]:
        if (counter := entry.get("counter")) is not None and counter["table"] == TABLE:
            name = ports[int(counter["name"].removeprefix("input").removeprefix("output"))]
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

    def __init__(self, enter: Sequence[str], ports: Mapping[str, int], uplink: str = "eth0") -> None:
        """`enter` is put in front of commands, so that they run on the host."""
        self._enter, self._ports, self._uplink = tuple(enter), dict(ports), uplink

    def __enter__(self) -> Self:
        self._run("nft", "-f", "-", told=rules(self._ports, self._uplink))
        return self

    def __exit__(self, *_: object) -> None:
        self._run("nft", "delete", "table", "inet", TABLE)

    def read(self) -> dict[str, Passed]:
        listing = json.loads(self._run("nft", "-j", "list", "counters", "table", "inet", TABLE))
        whole = read_interface(self._run("cat", "/proc/net/dev"), self._uplink)
        return with_other(read_counters(listing, list(self._ports)), whole)

    def _run(self, *command: str, told: str = "") -> str:
        done = subprocess.run([*self._enter, *command], input=told, capture_output=True, text=True, check=True)
        return done.stdout
