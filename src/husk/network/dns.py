"""DNS messages: reads questions and writes answers, bytes in and bytes out, without any I/O.

Only what a resolver for containers needs: one question per message, A, AAAA and PTR answers, EDNS noticed. Everything
else is passed on as it is to somebody who understands it.
"""

import struct
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from msgspec import Struct

A = 1
PTR = 12
AAAA = 28
OPT = 41
ANY = 255
_IN = 1

NO_ERROR = 0
FORMAT_ERROR = 1
SERVER_FAILURE = 2
NO_SUCH_NAME = 3
NOT_IMPLEMENTED = 4
REFUSED = 5

TTL = 600
_PLAIN_UDP = 512
_OUR_UDP = 1232  # fits into one packet on any link
_LONGEST_NAME = 255

_RESPONSE, _OPCODE, _TRUNCATED, _WANTED, _AVAILABLE = 0x8000, 0x7800, 0x0200, 0x0100, 0x0080

_HEADER = struct.Struct("!HHHHHH")
_KIND = struct.Struct("!HH")
_RECORD = struct.Struct("!HHIH")  # kind, class, TTL, length
# A pointer to the name at the start of the question.
_SAME_NAME = b"\xc0\x0c"


class DnsQuery(Struct, frozen=True):
    """A message with one question; `name` is in lower case and without the last dot."""

    identity: int
    flags: int
    name: str
    kind: int
    question: bytes
    # How much the client takes over UDP, and whether it speaks EDNS at all.
    size: int
    edns: bool


class MalformedQuestion(ValueError):
    """Not a question that can be answered."""


def parse(data: bytes) -> DnsQuery:
    if len(data) < _HEADER.size:
        raise MalformedQuestion("shorter than a header")
    identity, flags, questions, answers, authorities, additional = _HEADER.unpack_from(data)
    if flags & _RESPONSE or questions != 1 or flags & _OPCODE:
        raise MalformedQuestion("not one question")
    name, end = _name(data, _HEADER.size)
    if end + _KIND.size > len(data):
        raise MalformedQuestion("cut off in its question")
    kind, category = _KIND.unpack_from(data, end)
    end += _KIND.size
    if category not in (_IN, ANY):
        raise MalformedQuestion(f"class {category}")
    size, edns = _PLAIN_UDP, False
    if additional and not answers and not authorities and data[end : end + 1] == b"\0":
        try:
            what, payload, *_ = _RECORD.unpack_from(data, end + 1)
        except struct.error as error:
            raise MalformedQuestion("cut off in its options") from error
        if what == OPT:
            size, edns = max(payload, _PLAIN_UDP), True
    return DnsQuery(identity, flags, name, kind, data[_HEADER.size : end], size, edns)


def _name(data: bytes, offset: int) -> tuple[str, int]:
    labels: list[str] = []
    start = offset
    while True:
        if offset >= len(data):
            raise MalformedQuestion("cut off in a name")
        length = data[offset]
        offset += 1
        if not length:
            return ".".join(labels).lower(), offset
        # A compressed name has nothing to point to before the first question.
        if length > 63 or offset + length > len(data) or offset + length - start > _LONGEST_NAME:
            raise MalformedQuestion("a label that is too long")
        labels.append(data[offset : offset + length].decode("latin-1"))
        offset += length


def encode_name(name: str) -> bytes:
    encoded = b""
    for label in name.rstrip(".").split("."):
        raw = label.encode("latin-1", errors="replace")
        if not 0 < len(raw) <= 63:
            raise MalformedQuestion(f"invalid name {name!r}")
        encoded += bytes([len(raw)]) + raw
    if len(encoded) > _LONGEST_NAME - 1:
        raise MalformedQuestion(f"invalid name {name!r}")
    return encoded + b"\0"


def addresses(query: DnsQuery, found: Sequence[IPv4Address | IPv6Address]) -> bytes:
    """The answer to a question for addresses; without any it says that the name exists and has none of that kind."""
    wanted = [address for address in found if query.kind in (ANY, A if address.version == 4 else AAAA)]
    return _response(query, [_record(A if one.version == 4 else AAAA, one.packed) for one in wanted])


def names(query: DnsQuery, found: Sequence[str]) -> bytes:
    """The answer to a question for the names of an address."""
    return _response(query, [_record(PTR, encode_name(name)) for name in found])


def failure(query: DnsQuery, code: int) -> bytes:
    return _response(query, [], code)


def refusal(data: bytes, code: int = FORMAT_ERROR) -> bytes | None:
    """The answer to something that is not a question; None when it is an answer itself, or too short for one."""
    if len(data) < _HEADER.size:
        return None
    identity, flags, *_ = _HEADER.unpack_from(data)
    if flags & _RESPONSE:
        return None
    return _HEADER.pack(identity, _RESPONSE | (flags & (_OPCODE | _WANTED)) | code, 0, 0, 0, 0)


def fit(query: DnsQuery, response: bytes) -> bytes:
    """The response as it goes over UDP: when it is too large, only the news that TCP is needed."""
    if len(response) <= query.size:
        return response
    flags = struct.unpack_from("!H", response, 2)[0] | _TRUNCATED
    options = _options() if query.edns else b""
    return _HEADER.pack(query.identity, flags, 1, 0, 0, 1 if options else 0) + query.question + options


def answers(query: DnsQuery, response: bytes) -> bool:
    """Return True if a message that came in answers this question: others are somebody's attempt to deceive."""
    if len(response) < _HEADER.size:
        return False
    identity, flags, questions, *_ = _HEADER.unpack_from(response)
    if identity != query.identity or not flags & _RESPONSE:
        return False
    asked = response[_HEADER.size : _HEADER.size + len(query.question)]
    return not questions or asked.lower() == query.question.lower()


def code(response: bytes) -> int:
    return int(struct.unpack_from("!H", response, 2)[0]) & 0xF


def reversed_address(name: str) -> IPv4Address | IPv6Address | None:
    """The address that `2.0.17.172.in-addr.arpa` or a name of 32 digits below `ip6.arpa` asks the name of."""
    labels = name.split(".")[::-1]
    try:
        if name.endswith(".in-addr.arpa"):
            return IPv4Address(".".join(labels[2:]))
        if name.endswith(".ip6.arpa") and len(labels) == 34 and all(len(label) == 1 for label in labels[2:]):
            return IPv6Address(bytes.fromhex("".join(labels[2:])))
    except (AddressValueError, ValueError):
        return None
    return None


def _record(kind: int, value: bytes) -> bytes:
    return _SAME_NAME + _RECORD.pack(kind, _IN, TTL, len(value)) + value


def _options() -> bytes:
    return b"\0" + _RECORD.pack(OPT, _OUR_UDP, 0, 0)


def _response(query: DnsQuery, records: list[bytes], code: int = NO_ERROR) -> bytes:
    flags = _RESPONSE | _AVAILABLE | (query.flags & _WANTED) | code
    options = _options() if query.edns else b""
    header = _HEADER.pack(query.identity, flags, 1, len(records), 0, 1 if options else 0)
    return header + query.question + b"".join(records) + options
