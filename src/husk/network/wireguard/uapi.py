"""The requests to the program wireguard-go, and its answers, over its socket: lines of words. Pure.

The form is that of WireGuard's "cross-platform userspace implementation".
"""

from husk.errors import SystemFault
from husk.network.wireguard.parties import DeviceChange, DeviceState, Party, normal

# So often a host is heard from, in seconds: who has lost its place in a conversation begins a new one at once.
KEEPALIVE = 25
GET = b"get=1\n\n"


def request(change: DeviceChange) -> bytes:
    """Make the request of a change, in one step. InvalidParameter if an address is none: it would be read as lines."""
    lines = ["set=1"]
    if change.key:
        lines.append(f"private_key={change.key.hex()}")
    if change.port:
        lines.append(f"listen_port={change.port}")
    for key in change.gone:
        lines += [f"public_key={key.hex()}", "remove=true"]
    for party in change.parties:
        address, inner = normal(party.address), normal(party.inner)
        host = f"[{address}]" if ":" in address else address
        lines += [
            f"public_key={party.key.hex()}",
            f"endpoint={host}:{party.port}",
            f"persistent_keepalive_interval={KEEPALIVE}",
            "replace_allowed_ips=true",
            f"allowed_ip={inner}/128",
        ]
    return ("\n".join(lines) + "\n\n").encode()


def failure(answer: bytes) -> int:
    """The number of the error in an answer; 0 for none."""
    for line in answer.decode(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name == "errno":
            return abs(int(value))
    raise SystemFault("wireguard-go gave no answer")


def parse(answer: bytes) -> DeviceState:
    """Read a device's state from the answer to `GET`."""
    key, port = b"", 0
    parties: dict[bytes, Party] = {}
    current: dict[str, str] = {}

    def keep() -> None:
        if current:
            address, _, number = current.get("endpoint", "").rpartition(":")
            # Of a host that was heard over a link it tells the scope.
            address = address.strip("[]").partition("%")[0]
            public = bytes.fromhex(current["public_key"])
            inner = current.get("allowed_ip", "").removesuffix("/128")
            parties[public] = Party(public, inner, normal(address) if address else "", int(number or 0))

    for line in answer.decode(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name == "private_key":
            key = bytes.fromhex(value)
        elif name == "listen_port":
            port = int(value)
        elif name == "public_key":
            keep()
            current = {name: value}
        elif current:
            # Of several addresses none is what we have told.
            current[name] = "" if name == "allowed_ip" and name in current else value
    keep()
    return DeviceState(key, port, parties)
