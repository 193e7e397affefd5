"""Ports of this host that nobody has.

They are below those that the kernel gives to whoever asks for any: no connection of somebody takes one meanwhile.
"""

import random
import socket

_RANGE = range(20000, 30000)


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    return free_ports(1, kind)


def free_ports(count: int, kind: int = socket.SOCK_STREAM) -> int:
    """The first of `count` consecutive ports."""
    while True:
        first = random.choice(_RANGE)
        if all(_is_free(port, kind) for port in range(first, first + count)):
            return first


def _is_free(port: int, kind: int) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
