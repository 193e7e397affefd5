"""Receivers of messages, with their addresses and forms: one for each container whose driver sends its log away."""

import socket
from collections.abc import Callable, Sequence

import msgspec

from husk.engine.logs.messages import LogMessage
from husk.errors import InvalidParameter
from husk.runtime.logs.transport import ReceiverAddress
from husk.text.urls import split_url

# Where journald listens.
JOURNAL = "/run/systemd/journal/socket"


class LogReceiver(msgspec.Struct, frozen=True):
    """`encode` makes what is sent at once of some messages; `acknowledges` reads the receiver's word for a packet."""

    address: ReceiverAddress
    encode: Callable[[Sequence[LogMessage]], list[bytes]]
    acknowledges: Callable[[bytes], bytes] | None = None
    """What the receiver answers to a packet, where it was asked to."""
    waits: bool = True
    """Does a container start only when the receiver is there?"""
    required: str = ""
    """A path of this host that has to be there when the container is made."""


def host_and_port(text: str, default_port: int) -> tuple[str, int]:
    try:
        parts = split_url(f"//{text}")
        return parts.hostname or "localhost", parts.port or default_port
    except ValueError:
        raise InvalidParameter(f"invalid port in the address {text}") from None


def hostname() -> str:
    return socket.gethostname()
