"""Structs to protobuf and back. The declaration of a struct is the definition of its message.

    class Position(Message):
        line: Annotated[Int32, 1] = 0
        character: Annotated[Int32, 2] = 0

    Position.decode(data).line; Position(line=5).encode()

A type may be str, bytes, bool, int (int64) or one of the numbers below, a message, a list or dict of those. What may be
absent and what is one of several (`oneof`) is `| None`. What a message needs is made when it is first used.

The library `protobuf` takes 2.6 MiB of memory for this, most of it an implementation in Python that it does not use. So
it is only what the tests compare with: the bytes are the same.
"""

import types
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from husk.errors import InvalidParameter
from husk.rpc.wire import DEEPEST, LENGTH, VARINT, Malformed, read_span, read_tag, read_varint, skip, write_varint

Int32 = Annotated[int, "int32"]
Uint32 = Annotated[int, "uint32"]
Uint64 = Annotated[int, "uint64"]
# On the wire an enumeration is a number like any other; names for its values are with whoever compares them.
Enum = Int32

# Of each kind of number: how many bits it has, and whether it has a sign.
_NUMBERS = {"int32": (32, True), "int64": (64, True), "uint32": (32, False), "uint64": (64, False), "bool": (1, False)}

Values = dict[str, Any]
# Data, position, depth → a value, and where it ends.
_Read = Callable[[bytes, int, int], tuple[Any, int]]
_Write = Callable[[Any], bytes]
# The same, into the values of a message → where it ends.
_Take = Callable[[bytes, int, int, Values], int]


class Message(Struct):
    """The base of all messages."""

    _plan: ClassVar["_Plan | None"] = None

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """InvalidParameter for what is no such message."""
        try:
            return _plan_of(cls).read(data, 0)  # type: ignore[no-any-return]
        except (Malformed, UnicodeDecodeError) as error:
            raise InvalidParameter(f"a message of type {cls.__name__} cannot be read: {error}") from None

    def encode(self) -> bytes:
        return _plan_of(type(self)).write(self)


class _Field:
    """One field as it is declared."""

    def __init__(self, name: str, declared: Any) -> None:
        self.name = name
        self.declared, *notes = get_args(declared)
        self.number = next(note for note in notes if isinstance(note, int))
        self.notes = [note for note in notes if isinstance(note, str)]
        self.optional = False
        self.repeated = False
        self.key: Any = None
        origin = get_origin(self.declared)
        if origin in (Union, types.UnionType):
            self.declared = next(one for one in get_args(self.declared) if one is not types.NoneType)
            self.optional = True
        elif origin is list:
            (self.declared,) = get_args(self.declared)
            self.repeated = True
        elif origin is dict:
            self.key, self.declared = get_args(self.declared)
        if get_origin(self.declared) is Annotated:
            self.declared, note = get_args(self.declared)
            self.notes.append(note)
        self.is_message = isinstance(self.declared, type) and issubclass(self.declared, Message)
        self.is_single = self.is_message and not self.repeated and self.key is None
        self.is_number = self.declared in (int, bool)
        self.tag = self.number << 3 | (LENGTH if self.key is not None or not self.is_number else VARINT)

    # --- reading -----------------------------------------------------------------------------------------------------

    def takers(self) -> dict[int, _Take]:
        """By tag: what puts the field into the values that were read, and tells where it ends."""
        name = self.name
        if self.key is not None:
            return {self.tag: self._take_entry(_reader(self.key, []), _reader(self.declared, self.notes))}
        if self.is_single:
            return {self.tag: self._take_raw}
        read = _reader(self.declared, self.notes)

        def take(data: bytes, position: int, depth: int, values: Values) -> int:
            values[name], position = read(data, position, depth)
            return position

        def add(data: bytes, position: int, depth: int, values: Values) -> int:
            value, position = read(data, position, depth)
            values.setdefault(name, []).append(value)
            return position

        def add_packed(data: bytes, position: int, depth: int, values: Values) -> int:
            start, end = read_span(data, position)
            packed, at = data[start:end], 0
            while at < len(packed):
                at = add(packed, at, depth, values)
            return end

        if not self.repeated:
            return {self.tag: take}
        found: dict[int, _Take] = {self.tag: add}
        if self.is_number:
            found[self.number << 3 | LENGTH] = add_packed
        return found

    def _take_raw(self, data: bytes, position: int, depth: int, values: Values) -> int:
        """A message that comes in several parts is all of them, one behind the other; it is read at the end."""
        start, end = read_span(data, position)
        values[self.name] = values[self.name] + data[start:end] if self.name in values else data[start:end]
        return end

    def _take_entry(self, read_key: _Read, read_value: _Read) -> _Take:
        """An entry of a dict is a message with the fields 1 and 2."""
        key_tag, value_tag = (1 << 3 | _form(self.key)), (2 << 3 | _form(self.declared))

        def take(data: bytes, position: int, depth: int, values: Values) -> int:
            start, end = read_span(data, position)
            entry, at = data[start:end], 0
            key = value = None
            while at < len(entry):
                tag, at = read_tag(entry, at)
                if tag == key_tag:
                    key, at = read_key(entry, at, depth)
                elif tag == value_tag:
                    value, at = read_value(entry, at, depth)
                else:
                    at = skip(entry, at, tag)
            key = self.key() if key is None else key
            values.setdefault(self.name, {})[key] = self.declared() if value is None else value
            return end

        return take

    # --- writing -----------------------------------------------------------------------------------------------------

    def writer(self) -> _Write:
        """What the field is on the wire; nothing where it has nothing to say."""
        write, tag = _writer(self.declared, self.notes), write_varint(self.tag)
        if self.key is not None:
            write_key = _writer(self.key, [])
            key_tag, value_tag = write_varint(1 << 3 | _form(self.key)), write_varint(2 << 3 | _form(self.declared))

            def write_entries(value: dict[Any, Any]) -> bytes:
                entries = (key_tag + write_key(key) + value_tag + write(value[key]) for key in sorted(value))
                return b"".join(tag + _with_length(entry) for entry in entries)

            return write_entries
        if self.repeated and self.is_number:
            packed = write_varint(self.number << 3 | LENGTH)
            return lambda value: packed + _with_length(b"".join(map(write, value))) if value else b""
        if self.repeated:
            return lambda value: b"".join(tag + write(one) for one in value)
        if self.optional or self.is_message:
            return lambda value: b"" if value is None else tag + write(value)
        return lambda value: tag + write(value) if value else b""


class _Plan:
    """What is known of one message once it was used."""

    def __init__(self, kind: type[Message]) -> None:
        hints = get_type_hints(kind, include_extras=True)
        fields = sorted((_Field(name, hints[name]) for name in kind.__struct_fields__), key=lambda one: one.number)
        self._kind = kind
        self._takers = {tag: take for field in fields for tag, take in field.takers().items()}
        self._writers = [(field.name, field.writer()) for field in fields]
        self._parts = [(field.name, field.declared) for field in fields if field.is_single]
        # On the wire the order of a dict is anyone's.
        self._dicts = [field.name for field in fields if field.key is not None]

    def read(self, data: bytes, depth: int) -> Any:
        if depth > DEEPEST:
            raise Malformed("it is too deep")
        values: Values = {}
        takers = self._takers
        position, end = 0, len(data)
        while position < end:
            # Most tags are one byte, for which a call would take longer than all else.
            if (tag := data[position]) < 0x80:
                position += 1
            else:
                tag, position = read_tag(data, position)
            take = takers.get(tag)
            position = skip(data, position, tag) if take is None else take(data, position, depth, values)
        for name, kind in self._parts:
            if name in values:
                values[name] = _plan_of(kind).read(values[name], depth + 1)
        for name in self._dicts:
            if name in values:
                values[name] = dict(sorted(values[name].items()))
        return self._kind(**values)

    def write(self, message: Message) -> bytes:
        return b"".join([write(getattr(message, name)) for name, write in self._writers])


def _plan_of(kind: type[Message]) -> _Plan:
    # A subclass must not take its parent's.
    plan: _Plan | None = kind.__dict__.get("_plan")
    if plan is None:
        plan = kind._plan = _Plan(kind)
    return plan


def _form(kind: Any) -> int:
    return VARINT if kind in (int, bool) else LENGTH


def _number_kind(kind: type, notes: list[str]) -> tuple[int, bool]:
    return _NUMBERS[notes[0] if notes else "bool" if kind is bool else "int64"]


def _reader(kind: Any, notes: list[str]) -> _Read:
    if kind is str:
        return _read_text
    if kind is bytes:
        return _read_bytes
    if kind not in (int, bool):

        def read_message(data: bytes, position: int, depth: int) -> tuple[Any, int]:
            start, end = read_span(data, position)
            return _plan_of(kind).read(data[start:end], depth + 1), end

        return read_message
    bits, signed = _number_kind(kind, notes)

    def read_number(data: bytes, position: int, depth: int) -> tuple[Any, int]:
        value, position = read_varint(data, position)
        if bits == 1:
            return value != 0, position
        value &= (1 << bits) - 1
        return value - (1 << bits) if signed and value >> (bits - 1) else value, position

    return read_number


def _read_text(data: bytes, position: int, depth: int) -> tuple[str, int]:
    start, end = read_span(data, position)
    return data[start:end].decode(), end


def _read_bytes(data: bytes, position: int, depth: int) -> tuple[bytes, int]:
    start, end = read_span(data, position)
    return data[start:end], end


def _writer(kind: Any, notes: list[str]) -> _Write:
    if kind is str:
        return lambda value: _with_length(value.encode())
    if kind is bytes:
        return _with_length
    if kind not in (int, bool):
        return lambda value: _with_length(_plan_of(kind).write(value))
    bits, signed = _number_kind(kind, notes)
    lowest, highest = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def write_number(value: int) -> bytes:
        if not lowest <= value <= highest:
            raise ValueError(f"{value} is no number of {bits} bits" + ("" if signed else " without a sign"))
        return write_varint(value)

    return write_number


def _with_length(data: bytes) -> bytes:
    return write_varint(len(data)) + data
