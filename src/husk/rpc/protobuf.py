"""Structs to protobuf and back. The declaration of a struct is the definition of its message.

    class Position(Message):
        line: Annotated[Int32, 1] = 0
        character: Annotated[Int32, 2] = 0

    Position.decode(data).line; Position(line=5).encode()

A type may be str, bytes, bool, int (int64) or one of the numbers below, a message, a list or dict of those. What may be
absent and what is one of several (`oneof`) is `| None`.

The rules are those of proto3. What is zero or empty is not written, unless it may be absent. Fields are written in the
order of their numbers and dicts in that of their keys, so that equal messages have equal bytes. Fields that are not
declared are passed over; of several values of one field the last one counts, several messages become one. Groups, which
proto3 has no more, are refused.
"""

import contextlib
import threading
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from husk.errors import InvalidParameter

Int32 = Annotated[int, "int32"]
Uint32 = Annotated[int, "uint32"]
Uint64 = Annotated[int, "uint64"]
# On the wire an enumeration is a number like any other; names for its values are with whoever compares them.
Enum = Int32

# A message that somebody sent is read where it arrives if it has no more values than that.
MOST_VALUES = 10_000
# So many messages may be within one another, as with the libraries of protobuf.
_DEEPEST = 100

# How a value stands behind its tag.
_VARINT, _FIXED_64, _PIECE, _FIXED_32 = 0, 1, 2, 5
# Numbers below it are the same in all types of numbers.
_PLAIN = 1 << 31
_LONGEST_VARINT = 10
_BYTES = tuple(bytes((number,)) for number in range(1 << 7))

# Large messages are written in threads, and one of them may be the first of its kind.
_planning = threading.RLock()


class _Malformed(ValueError):
    """The bytes are no message."""


class Message(Struct):
    """The base of all messages."""

    _plan: ClassVar["_Plan | None"] = None

    @classmethod
    def decode(cls, data: bytes, *, most: int | None = MOST_VALUES) -> Self:
        """InvalidParameter for what is no such message, or has more values than `most`: each costs much more than the
        two bytes that it may have been sent in."""
        plan = _plan_of(cls)
        with _refusing(cls):
            if most is None or len(data) <= most or _count(plan, data, most) <= most:
                return cls(**_read(plan, data, [(0, len(data))], 1))
        raise InvalidParameter(f"a message of type {cls.__name__} has more than {most} values")

    @classmethod
    def count(cls, data: bytes, most: int) -> int:
        """Count the values of such a message, those of its messages included; it is not counted far behind `most`."""
        with _refusing(cls):
            return _count(_plan_of(cls), data, most)

    def encode(self) -> bytes:
        """ValueError for a number that its field has no room for, and for text that is none."""
        return _write(_plan_of(type(self)), self)


@contextlib.contextmanager
def _refusing(kind: type[Message]) -> Iterator[None]:
    """Tell of bytes that are no message."""
    try:
        yield
    except (_Malformed, UnicodeDecodeError, IndexError) as error:
        why = error if isinstance(error, _Malformed) else "a text is not UTF-8"
        why = "it ends too early" if isinstance(error, IndexError) else why
        raise InvalidParameter(f"a message of type {kind.__name__} cannot be read: {why}") from None


class _Number(NamedTuple):
    """A type of numbers: how many bits, and whether the highest of them is a sign."""

    bits: int
    signed: bool

    def read(self, value: int) -> int:
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.signed and value >> self.bits - 1 else value

    def write(self, value: int) -> bytes:
        end = 1 << self.bits - self.signed
        if not (-end if self.signed else 0) <= value < end:
            raise ValueError(f"a field of {self.bits} bits has no room for {value}")
        return _varint(value & (1 << 64) - 1)


_INT64 = _Number(64, True)
_NUMBERS = {"int32": _Number(32, True), "uint32": _Number(32, False), "uint64": _Number(64, False)}


class _Field:
    """One field: how it is declared, and by that how its values stand on the wire."""

    __slots__ = ("entry", "message", "name", "number", "optional", "plan", "repeated", "type")

    def __init__(self, name: str, declared: Any) -> None:
        self.name = name
        kind, *notes = get_args(declared)
        self.number: int = next(note for note in notes if isinstance(note, int))
        self.optional = get_origin(kind) in (Union, UnionType)
        self.repeated = get_origin(kind) is list
        # Of a dict, whose entries are messages of a key and a value.
        self.entry: tuple[_Field, _Field] | None = None
        if self.optional:
            kind = next(one for one in get_args(kind) if one is not NoneType)
        elif self.repeated:
            (kind,) = get_args(kind)
        elif get_origin(kind) is dict:
            key, kind = get_args(kind)
            self.entry = _Field("key", Annotated[key, 1]), _Field("value", Annotated[kind, 2])
        if get_origin(kind) is Annotated:
            kind, note = get_args(kind)
            notes.append(note)
        self.message: type[Message] | None = kind if issubclass(kind, Message) else None
        self.plan: _Plan | None = None
        # str, bytes, bool, or which numbers.
        noted = next((note for note in notes if isinstance(note, str)), "")
        self.type: Any = kind if kind in (str, bytes, bool) else _NUMBERS.get(noted, _INT64)

    @property
    def is_number(self) -> bool:
        """True if its values, unlike pieces, tell themselves where they end."""
        return self.message is None and self.type is not str and self.type is not bytes

    def empty(self) -> Any:
        """Return what an entry of a dict has where nothing is said."""
        if self.message is not None:
            return self.message()
        return 0 if isinstance(self.type, _Number) else self.type()

    def number_of(self, value: int) -> int:
        if value < _PLAIN and self.type is not bool:
            return value
        return value != 0 if self.type is bool else self.type.read(value)

    def piece(self, data: bytes, start: int, end: int, depth: int) -> Any:
        if self.plan is not None:
            return self.plan.kind(**_read(self.plan, data, [(start, end)], depth + 1))
        return data[start:end].decode() if self.type is str else data[start:end]

    def numbers(self, data: bytes, start: int, end: int) -> list[int]:
        """Those that stand behind one another in a piece."""
        found = []
        while start < end:
            value, start = _read_varint(data, start)
            found.append(self.number_of(value))
        if start > end:
            raise _Malformed("a number ends behind its piece")
        return found

    def tagged(self, value: Any) -> bytes:
        """Write one value behind its tag."""
        return _varint(self.number << 3 | (_VARINT if self.is_number else _PIECE)) + self.written(value)

    def as_piece(self, data: bytes) -> bytes:
        """Write what is several values behind the field's tag."""
        return _varint(self.number << 3 | _PIECE) + _varint(len(data)) + data

    def written(self, value: Any) -> bytes:
        """Write one value, with its length where it has one."""
        if self.is_number:
            number: int = value
            return _BYTES[number] if 0 <= number < len(_BYTES) else self.type.write(number)
        data: bytes = value
        if self.plan is not None:
            data = _write(self.plan, value)
        elif self.type is str:
            data = value.encode()
        return _varint(len(data)) + data


class _Table:
    """The fields that a message may have, or an entry of a dict, which is a key and a value."""

    __slots__ = ("by_tag", "packed", "within")

    def __init__(self) -> None:
        # By a tag, which is a field's number and the form of its value: what is done with the value.
        self.by_tag: dict[int, tuple[int, _Field]] = {}
        # The tables of what has values within, by the numbers of the fields.
        self.within: dict[int, _Table] = {}
        # The fields whose numbers may come as one piece.
        self.packed: set[int] = set()

    def add(self, field: _Field) -> None:
        piece, several = field.number << 3 | _PIECE, field.repeated
        if field.entry is not None:
            entry = self.within[field.number] = _Table()
            for part in field.entry:
                entry.add(part)
            self.by_tag[piece] = _ENTRY, field
        elif field.plan is not None:
            self.within[field.number] = field.plan
            self.by_tag[piece] = _MANY if several else _PARTS, field
        elif not field.is_number:
            self.by_tag[piece] = _MANY if several else _ONE, field
        else:
            self.by_tag[field.number << 3 | _VARINT] = _MANY if several else _ONE, field
            if several:
                self.packed.add(field.number)
                self.by_tag[piece] = _PACKED, field


class _Plan(_Table):
    """The plan for reading and writing one message."""

    __slots__ = ("fields", "kind")

    def __init__(self, kind: type[Message]) -> None:
        super().__init__()
        self.kind = kind
        hints = get_type_hints(kind, include_extras=True)
        self.fields = sorted((_Field(name, hints[name]) for name in kind.__struct_fields__), key=lambda one: one.number)


# A value of its own, one of a list, a list of numbers, an entry of a dict, a message that may come in several parts.
_ONE, _MANY, _PACKED, _ENTRY, _PARTS = range(5)


def _plan_of(kind: type[Message]) -> _Plan:
    # A subclass must not take its parent's.
    plan: _Plan | None = kind.__dict__.get("_plan")
    if plan is None:
        with _planning:
            if "_plan" not in kind.__dict__:
                made: dict[type[Message], _Plan] = {}
                _gather(kind, made)
                for one in made.values():
                    for field in one.fields:
                        one.add(field)
                for one in made.values():
                    one.kind._plan = one
        plan = kind._plan
        assert plan is not None
    return plan


def _gather(kind: type[Message], made: dict[type[Message], _Plan]) -> _Plan:
    """Make plans of a message and of all that it has, as far as there are none."""
    if (plan := kind.__dict__.get("_plan") or made.get(kind)) is None:
        plan = made[kind] = _Plan(kind)
        for field in plan.fields:
            of = field if field.entry is None else field.entry[1]
            if of.message is not None:
                of.plan = _gather(of.message, made)
    return plan


def _read(table: _Table, data: bytes, parts: list[tuple[int, int]], depth: int) -> dict[str, Any]:
    """Read the fields of what lies in these parts of the data."""
    if depth > _DEEPEST:
        raise _Malformed("too many messages are within one another")
    values: dict[str, Any] = {}
    again: list[_Field] = []
    by_tag = table.by_tag
    for position, end in parts:
        while position < end:
            tag = data[position]
            position += 1
            if tag > 0x7F:
                tag, position = _read_varint(data, position - 1)
            if not 8 <= tag < 1 << 32:
                raise _Malformed("a field has no such number")
            form = tag & 7
            if form == _VARINT:
                value = data[position]
                position += 1
                if value > 0x7F:
                    value, position = _read_varint(data, position - 1)
                if (known := by_tag.get(tag)) is not None:
                    todo, field = known
                    if todo == _ONE:
                        values[field.name] = field.number_of(value)
                    else:
                        values.setdefault(field.name, []).append(field.number_of(value))
            elif form == _PIECE:
                length = data[position]
                position += 1
                if length > 0x7F:
                    length, position = _read_varint(data, position - 1)
                start, position = position, position + length
                if position > end:
                    raise _Malformed("it ends too early")
                if (known := by_tag.get(tag)) is not None:
                    todo, field = known
                    if todo == _ONE:
                        values[field.name] = field.piece(data, start, position, depth)
                    elif todo == _MANY:
                        values.setdefault(field.name, []).append(field.piece(data, start, position, depth))
                    elif todo == _PACKED:
                        values.setdefault(field.name, []).extend(field.numbers(data, start, position))
                    else:
                        if field.name not in values:
                            values[field.name] = []
                            again.append(field)
                        values[field.name].append((start, position))
            elif form == _FIXED_64:
                position += 8
            elif form == _FIXED_32:
                position += 4
            else:
                raise _Malformed("it has a group")
        if position > end:
            raise _Malformed("it ends too early")
    for field in again:
        found = values[field.name]
        if field.entry is not None:
            of_key, of_value = field.entry
            entries = [_read(table.within[field.number], data, [part], depth + 1) for part in found]
            pairs = {entry.get("key", of_key.empty()): entry.get("value") for entry in entries}
            # On the wire their order is anyone's.
            values[field.name] = {
                name: of_value.empty() if pairs[name] is None else pairs[name] for name in sorted(pairs)
            }
        else:
            assert field.plan is not None
            values[field.name] = field.plan.kind(**_read(field.plan, data, found, depth + 1))
    return values


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift == 7 * _LONGEST_VARINT:
            raise _Malformed("a number has too many bytes")


def _write(plan: _Plan, message: Message) -> bytes:
    out: list[bytes] = []
    for field in plan.fields:
        value = getattr(message, field.name)
        # Messages are never empty, lists, dicts and values are.
        if value is None or not (value or field.optional):
            continue
        if field.entry is not None:
            of_key, of_value = field.entry
            out += [field.as_piece(of_key.tagged(key) + of_value.tagged(value[key])) for key in sorted(value)]
        elif not field.repeated:
            out.append(field.tagged(value))
        elif field.is_number:
            out.append(field.as_piece(b"".join(map(field.written, value))))
        else:
            out += [field.tagged(one) for one in value]
    return b"".join(out)


def _varint(value: int) -> bytes:
    if value < len(_BYTES):
        return _BYTES[value]
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _count(table: _Table, data: bytes, most: int) -> int:
    """Count the values of a message, those of its messages included; counting ends behind `most`.

    Much that is no message is not told here: whoever reads it finds that out.
    """
    count = 0
    waiting: list[tuple[_Table, int, int]] = [(table, 0, len(data))]
    while waiting and count <= most:
        where, position, end = waiting.pop()
        while position < end and count <= most:
            count += 1
            tag, position = _read_varint(data, position)
            form = tag & 7
            if form == _VARINT:
                _, position = _read_varint(data, position)
            elif form == _PIECE:
                length, position = _read_varint(data, position)
                if tag >> 3 in where.packed:
                    count += length
                if (inner := where.within.get(tag >> 3)) is not None and position + length <= end:
                    waiting.append((inner, position, position + length))
                position += length
            elif form == _FIXED_64:
                position += 8
            elif form == _FIXED_32:
                position += 4
    return count
