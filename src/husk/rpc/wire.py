"""The bytes of protobuf below its messages: numbers, fields, and how those are passed over that nobody knows.

Pure, and as its specification has it; `husk.rpc.protobuf` makes messages of it.
"""

VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = range(6)

_FIXED = {FIXED64: 8, FIXED32: 4}
_SMALL = tuple(bytes((value,)) for value in range(0x80))
_MASK = (1 << 64) - 1
DEEPEST = 100


class Malformed(Exception):
    """These bytes are no message."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at a position, of 64 bits and without a sign, and where it ends."""
    try:
        byte = data[position]
        if byte < 0x80:
            return byte, position + 1
        value, shift = byte & 0x7F, 7
        while True:
            position += 1
            byte = data[position]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & _MASK, position + 1
            shift += 7
            if shift > 63:
                raise Malformed("a number has no end")
    except IndexError:
        raise Malformed("it ends in the middle of a field") from None


def read_tag(data: bytes, position: int) -> tuple[int, int]:
    """The number and form of a field, as one number of 32 bits, and where it ends."""
    tag, end = read_varint(data, position)
    if end - position > 1 and (end - position > 5 or tag >> 32):
        raise Malformed("a field with too large a number")
    return tag, end


def write_varint(value: int) -> bytes:
    """A negative number is written as the one of 64 bits that has its bits."""
    if 0 <= value < 0x80:
        return _SMALL[value]
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_span(data: bytes, position: int) -> tuple[int, int]:
    """Where the bytes of a field begin and end, whose length is at a position."""
    if position < len(data) and (size := data[position]) < 0x80:
        start = position + 1
    else:
        size, start = read_varint(data, position)
    if (end := start + size) > len(data):
        raise Malformed("it ends in the middle of a field")
    return start, end


def skip(data: bytes, position: int, tag: int, depth: int = 0) -> int:
    """Where a field ends whose tag was read. What was once a group of fields ends with a tag of its own."""
    kind = tag & 7
    if not tag >> 3 or depth > DEEPEST:
        raise Malformed("a field without a number" if not tag >> 3 else "it is too deep")
    if kind == VARINT:
        return read_varint(data, position)[1]
    if kind == LENGTH:
        return read_span(data, position)[1]
    if kind in _FIXED:
        if (end := position + _FIXED[kind]) > len(data):
            raise Malformed("it ends in the middle of a field")
        return end
    if kind != GROUP:
        raise Malformed("a field of unknown form")
    while True:
        inner, position = read_tag(data, position)
        if inner & 7 == GROUP_END:
            if inner >> 3 != tag >> 3:
                raise Malformed("a group ends that has not begun")
            return position
        position = skip(data, position, inner, depth + 1)
