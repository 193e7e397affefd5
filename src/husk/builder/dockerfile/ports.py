"""`EXPOSE`: ports and ranges, with a protocol."""

import re

from husk.builder.dockerfile.errors import DockerfileError

PROTOCOLS = ("tcp", "udp", "sctp")
HIGHEST = 65535
_FORM = re.compile(
    r"(?:(?P<address>.*):)??(?:(?P<host>[\d-]*):)?(?P<first>\d{1,5})(?:-(?P<last>\d{1,5}))?(?:/(?P<protocol>\w+))?",
    re.ASCII,
)


def parse(text: str) -> list[str]:
    """`80` is 80/tcp, `80-82/udp` three ports; the host's part of a mapping means nothing here."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise DockerfileError(f"invalid containerPort: {text}")
    protocol = (found["protocol"] or "tcp").lower()
    if protocol not in PROTOCOLS:
        raise DockerfileError(f'invalid port: "{text}": invalid proto: {found["protocol"]}')
    first = int(found["first"])
    last = int(found["last"] or first)
    if not first <= last <= HIGHEST:
        raise DockerfileError(f"invalid containerPort: {text}")
    return [f"{port}/{protocol}" for port in range(first, last + 1)]
