"""One message to a receiver of logs: a whole line, or a piece of one that is too long.

Receivers of messages, with their addresses and forms: one for each container whose driver sends its log away.
"""

import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from husk.engine.logs.records import LogRecord
from husk.engine.model.clock import parse_rfc3339
from husk.errors import InvalidParameter
from husk.runtime.logs.transport import ReceiverAddress
from husk.text.urls import split_url

# Docker's own size of a message.
LONGEST = 16 * 1024
# Where journald listens.
JOURNAL = "/run/systemd/journal/socket"


class LogMessage(NamedTuple):
    """`text` is without the newline; `partial` says that its line goes on in the next message of the stream."""

    time_ns: int
    stream: int
    text: bytes
    partial: bool = False

    @property
    def severity(self) -> int:
        """syslog's number: stdout is information, stderr an error."""
        return 6 if self.stream == 1 else 3


class Assembler:
    """Puts the pieces of lines together that conmon writes."""

    def __init__(self) -> None:
        self._begun: dict[int, tuple[bytes, bytes]] = {}

    @property
    def pending(self) -> bool:
        """True while there is a line whose end has not been seen."""
        return bool(self._begun)

    def add(self, records: Sequence[LogRecord]) -> list[LogMessage]:
        messages = []
        for record in records:
            timestamp, text = self._begun.pop(record.stream, (record.timestamp, b""))
            text += record.data.removesuffix(b"\n")
            time_ns = parse_rfc3339(timestamp.decode())
            while len(text) > LONGEST:
                messages.append(LogMessage(time_ns, record.stream, text[:LONGEST], partial=True))
                text = text[LONGEST:]
            if record.partial:
                self._begun[record.stream] = (timestamp, text)
            elif text or not messages or not messages[-1].partial:
                messages.append(LogMessage(time_ns, record.stream, text))
        return messages

    def flush(self) -> list[LogMessage]:
        """Take out what was written without a newline at the very end."""
        left = [LogMessage(parse_rfc3339(time.decode()), stream, text) for stream, (time, text) in self._begun.items()]
        self._begun.clear()
        return left


class LogReceiver(msgspec.Struct, frozen=True):
    """`encode` makes what is sent at once of some messages; `acknowledges` reads the receiver's word for a packet."""

    address: ReceiverAddress
    encode: Callable[[Sequence[LogMessage]], list[bytes]]
    acknowledges: Callable[[bytes], bytes] | None = None
    """The answer that the receiver gives to a packet, where it was asked for one."""
    waits: bool = True
    """True if a container starts only when the receiver is there."""
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
