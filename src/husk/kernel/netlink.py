"""Talks to the kernel over netlink: framing, attributes, and a socket that sends and reads answers.

Only what rtnetlink needs, on the standard library: importing pyroute2 costs 12 MiB and 100 ms, and its socket runs an
event loop of its own per request. A `NetlinkSocket` belongs to the network namespace of the thread that opened it, for
as long as it lives, whatever namespace that thread enters later.

The kernel carries a request out while it is being sent, however long that takes, and has queued the answer when `send`
returns. It leaves the answer out in two cases (no memory for it, an interrupted operation), so nobody waits for one
without end: after `ANSWER_SECONDS` the request fails with ETIMEDOUT, and its outcome is not known.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from msgspec import Struct

REQUEST = 0x1
ACK = 0x4
DUMP = 0x300
CREATE = 0x400
EXCLUSIVE = 0x200
REPLACE = 0x100

_ERROR = 2
_DONE = 3
_ACK_TLVS = 0x200
_DUMP_INTERRUPTED = 0x10

_SOL_NETLINK = 270
_NETLINK_CAP_ACK = 10
_NETLINK_EXT_ACK = 11
_ERROR_MESSAGE = 1

_NESTED = 0x8000
_TYPE_MASK = 0x3FFF

_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_TIMEVAL = struct.Struct("@ll")
_RECEIVE = 1 << 16
_DUMP_ATTEMPTS = 10
# The answers to this many requests fit into a socket's buffer many times over.
_MOST_AT_ONCE = 64
_FROM_KERNEL = 0

ANSWER_SECONDS = 10


class NetlinkMessage(NamedTuple):
    """One request, not yet numbered; `what` says in an error what was attempted."""

    type: int
    flags: int
    payload: bytes
    what: str


class NetlinkAnswer(Struct, frozen=True):
    """One message from the kernel."""

    type: int
    flags: int
    sequence: int
    payload: bytes


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute, padded to the four bytes netlink aligns to."""
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)


def nested(kind: int, *attributes: bytes) -> bytes:
    return attribute(kind | _NESTED, b"".join(attributes))


def number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def attributes(data: bytes) -> dict[int, bytes]:
    """Attributes by kind; of repeated ones the last.

    An interface has fifty, and a host with many containers thousands of interfaces: so this does not go by way of
    `repeated`, which takes twice as long.
    """
    found: dict[int, bytes] = {}
    offset, end, head, unpack = 0, len(data), _ATTRIBUTE.size, _ATTRIBUTE.unpack_from
    while offset + head <= end:
        length, kind = unpack(data, offset)
        after = offset + length
        if length < head or after > end:
            raise ValueError(f"malformed netlink attribute of length {length} at offset {offset}")
        found[kind & _TYPE_MASK] = data[offset + head : after]
        offset = (after + 3) & ~3
    return found


def repeated(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(kind, value) of each attribute."""
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size or offset + length > len(data):
            raise ValueError(f"malformed netlink attribute of length {length} at offset {offset}")
        yield kind & _TYPE_MASK, data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3


def encode(message: NetlinkMessage, sequence: int) -> bytes:
    length = _HEADER.size + len(message.payload)
    header = _HEADER.pack(length, message.type, message.flags | REQUEST, sequence, 0)
    return header + message.payload + bytes(-length % 4)


def decode(data: bytes) -> Iterator[NetlinkAnswer]:
    """The messages of one datagram."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, flags, sequence, _port = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > len(data):
            raise ValueError(f"malformed netlink message of length {length} at offset {offset}")
        yield NetlinkAnswer(kind, flags, sequence, data[offset + _HEADER.size : offset + length])
        offset += (length + 3) & ~3


def error_of(answer: NetlinkAnswer, what: str) -> OSError | None:
    """Return the error that an error message reports; None when the message is an acknowledgement."""
    (code,) = struct.unpack_from("=i", answer.payload)
    if code == 0:
        return None
    reason = os.strerror(-code)
    if answer.flags & _ACK_TLVS:
        # The request's header is echoed between the code and the attributes (CAP_ACK leaves its payload out).
        detail = attributes(answer.payload[4 + _HEADER.size :]).get(_ERROR_MESSAGE)
        if detail:
            reason += f" ({detail.rstrip(bytes(1)).decode(errors='replace')})"
    return OSError(-code, f"{what}: {reason}")


class NetlinkSocket:
    """A blocking netlink socket for one thread at a time; NETLINK_ROUTE unless another protocol is asked for."""

    def __init__(self, protocol: int = socket.NETLINK_ROUTE, answer_seconds: int = ANSWER_SECONDS) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self._sequence = 0
        self._answer_seconds = answer_seconds
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_CAP_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_EXT_ACK, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEVAL.pack(answer_seconds, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def execute(self, *messages: NetlinkMessage) -> None:
        """Carry out the messages in order, in few system calls. The first failure is raised after all were tried."""
        if failure := next((error for error in self.attempt(messages) if error is not None), None):
            raise failure

    def attempt(self, messages: Sequence[NetlinkMessage]) -> list[OSError | None]:
        """Carry out the messages in order; what became of each."""
        outcomes: list[OSError | None] = []
        for start in range(0, len(messages), _MOST_AT_ONCE):
            outcomes += self._attempt(messages[start : start + _MOST_AT_ONCE])
        return outcomes

    def _attempt(self, messages: Sequence[NetlinkMessage]) -> list[OSError | None]:
        first = self._sequence + 1
        self._sequence += len(messages)
        batch = (
            encode(message._replace(flags=message.flags | ACK), first + number)
            for number, message in enumerate(messages)
        )
        self._socket.send(b"".join(batch))
        outcomes: dict[int, OSError | None] = {}
        while len(outcomes) < len(messages):
            missing = next(position for position in range(len(messages)) if position not in outcomes)
            for answer in self._receive(messages[missing].what):
                position = answer.sequence - first
                if answer.type == _ERROR and 0 <= position < len(messages):
                    outcomes[position] = error_of(answer, messages[position].what)
        return [outcomes[position] for position in range(len(messages))]

    def transact(self, begin: NetlinkMessage, messages: Sequence[NetlinkMessage], end: NetlinkMessage) -> None:
        """Carry out all of the messages or none of them; the first failure is raised."""
        first = self._sequence
        self._sequence += len(messages) + 2
        batch = [begin, *(message._replace(flags=message.flags | ACK) for message in messages), end]
        self._socket.send(b"".join(encode(message, first + number) for number, message in enumerate(batch)))
        outstanding = len(messages)
        failure: OSError | None = None
        while outstanding:
            for answer in self._receive(begin.what):
                position = answer.sequence - first
                if answer.type != _ERROR or not 0 <= position < len(batch):
                    continue
                error = error_of(answer, batch[position].what)
                if error is not None and position in (0, len(batch) - 1):
                    raise error
                failure = failure or error
                outstanding -= 0 < position < len(batch) - 1
        if failure is not None:
            raise failure

    def _receive(self, what: str) -> Iterator[NetlinkAnswer]:
        """The messages of the next datagram from the kernel; whatever another process sends is not heard."""
        while True:
            try:
                data, (sender, _groups) = self._socket.recvfrom(_RECEIVE)
            except BlockingIOError:
                seconds = self._answer_seconds
                raise OSError(errno.ETIMEDOUT, f"{what}: the kernel has not answered for {seconds} seconds") from None
            except OSError as error:
                raise OSError(error.errno, f"{what}: the kernel's answer is lost: {error.strerror}") from error
            if sender == _FROM_KERNEL:
                return decode(data)

    def ask(self, message: NetlinkMessage) -> bytes:
        """The payload of the one message that answers a question."""
        self._sequence += 1
        self._socket.send(encode(message, self._sequence))
        while True:
            for answer in self._receive(message.what):
                if answer.sequence != self._sequence:
                    continue
                if answer.type == _ERROR:
                    raise error_of(answer, message.what) or OSError(f"{message.what}: unexpected acknowledgement")
                return answer.payload

    def dump(self, message: NetlinkMessage) -> list[bytes]:
        """All objects that a dump request lists, as payloads; repeated when the list changed while it was read."""
        for _ in range(_DUMP_ATTEMPTS):
            payloads, consistent = self._dump_once(message)
            if consistent:
                break
        return payloads

    def _dump_once(self, message: NetlinkMessage) -> tuple[list[bytes], bool]:
        self._sequence += 1
        self._socket.send(encode(message._replace(flags=message.flags | DUMP), self._sequence))
        payloads: list[bytes] = []
        consistent = True
        while True:
            for answer in self._receive(message.what):
                if answer.sequence != self._sequence:
                    continue
                consistent = consistent and not answer.flags & _DUMP_INTERRUPTED
                if answer.type == _DONE:
                    return payloads, consistent
                if answer.type == _ERROR:
                    raise error_of(answer, message.what) or OSError(f"{message.what}: unexpected acknowledgement")
                payloads.append(answer.payload)
