"""Structs to protobuf and back. The declaration of a struct is the definition of its message.

    class Position(Message):
        line: Annotated[Int32, 1] = 0
        character: Annotated[Int32, 2] = 0

    Position.decode(data).line; Position(line=5).encode()

A type may be str, bytes, bool, int (int64) or one of the numbers below, a message, a list or dict of those. What may be
absent and what is one of several (`oneof`) is `| None`. Descriptors are made when a message is first used.
"""

import threading
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as WireMessage
from msgspec import Struct

from husk.errors import InvalidParameter
from husk.rpc import protobuf_core
from husk.rpc.protobuf_core import Core, Description

Int32 = Annotated[int, "int32"]
Uint32 = Annotated[int, "uint32"]
Uint64 = Annotated[int, "uint64"]
# On the wire an enumeration is a number like any other; names for its values are with whoever compares them.
Enum = Int32

_SCALARS = {
    str: protobuf_core.STRING,
    bytes: protobuf_core.BYTES,
    bool: protobuf_core.BOOL,
    int: protobuf_core.INT64,
}
_NUMBERS = {"int32": protobuf_core.INT32, "uint32": protobuf_core.UINT32, "uint64": protobuf_core.UINT64}

# A message that somebody sent is read where it arrives if it has no more values than that.
MOST_VALUES = 10_000

_core = Core()
_files: dict[type["Message"], str] = {}
# Large messages are written in threads, and one of them may be the first of its kind.
_describing = threading.RLock()


class Message(Struct):
    """The base of all messages."""

    _plan: ClassVar["_Plan | None"] = None

    @classmethod
    def decode(cls, data: bytes, *, most: int | None = MOST_VALUES) -> Self:
        """InvalidParameter for what is no such message, or has more values than `most`: each costs much more than the
        two bytes that it may have been sent in."""
        plan = _plan_of(cls)
        if most is not None and len(data) > most and _count(plan, data, most) > most:
            raise InvalidParameter(f"a message of type {cls.__name__} has more than {most} values")
        try:
            wire = plan.wire.FromString(data)
        except DecodeError as error:
            raise InvalidParameter(f"a message of type {cls.__name__} cannot be read: {error}") from None
        return plan.read(wire)  # type: ignore[no-any-return]

    @classmethod
    def count(cls, data: bytes, most: int) -> int:
        """Count the values of such a message, those of its messages included; it is not counted far behind `most`."""
        return _count(_plan_of(cls), data, most)

    def encode(self) -> bytes:
        wire = _plan_of(type(self)).write(self)
        return wire.SerializeToString(deterministic=True)


def _same(value: Any) -> Any:
    return value


class _Field:
    """One field: how it is declared, and what stands between its value here and its value on the wire."""

    __slots__ = ("declared", "key", "name", "notes", "number", "optional", "repeated")

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

    @property
    def is_packed(self) -> bool:
        """True if the values of the field may come as one, each of a byte or more."""
        return self.repeated and (self.declared is int or self.declared is bool)

    @property
    def message(self) -> type[Message] | None:
        return self.declared if isinstance(self.declared, type) and issubclass(self.declared, Message) else None

    def describe(self, into: Description, owner: str) -> None:
        """`owner` is the name of the message that it is in."""
        kind, type_name = self._type()
        if self.key is not None:
            name = f"{self.name.title().replace('_', '')}Entry"
            entry = Description(name, of_map=True)
            entry.field("key", 1, _SCALARS[self.key])
            entry.field("value", 2, kind, type_name)
            into.contain(entry)
            into.field(self.name, self.number, protobuf_core.MESSAGE, f".{owner}.{name}", repeated=True)
            return
        optional = self.optional and self.message is None
        into.field(self.name, self.number, kind, type_name, repeated=self.repeated, optional=optional)

    def _type(self) -> tuple[int, str]:
        if self.message is not None:
            return protobuf_core.MESSAGE, f".{_name(self.message)}"
        return (_NUMBERS[self.notes[0]] if self.notes else _SCALARS[self.declared]), ""

    def reader(self) -> Callable[[Any], Any]:
        read = _plan_of(self.message).read if self.message else None
        if self.key is not None:
            # On the wire their order is anyone's.
            if read is None:
                return lambda value: dict(sorted(value.items()))
            return lambda value: {key: read(value[key]) for key in sorted(value)}
        if self.repeated:
            return (lambda value: [read(one) for one in value]) if read else list
        return read or _same

    def writer(self) -> Callable[[Any], Any]:
        write = _plan_of(self.message).write if self.message else None
        if write is None:
            return _same
        if self.key is not None:
            return lambda value: {key: write(one) for key, one in value.items()}
        if self.repeated:
            return lambda value: [write(one) for one in value]
        return write


class _Entry:
    """An entry of a dict: a key, and a value that may be a message."""

    __slots__ = ("packed", "within")

    def __init__(self, within: "dict[int, _Plan | _Entry]") -> None:
        self.packed: frozenset[int] = frozenset()
        self.within = within


class _Plan:
    """The plan for reading and writing one message, made once its descriptor is there."""

    __slots__ = ("_readers", "_within", "_writers", "fields", "kind", "packed", "wire")

    def __init__(self, kind: type[Message], fields: list[_Field]) -> None:
        self.kind = kind
        self.wire: type[WireMessage] = _core.message_class(_name(kind))
        self.fields = fields
        self.packed = frozenset(field.number for field in fields if field.is_packed)
        self._readers: dict[str, Callable[[Any], Any]] | None = None
        self._within: dict[int, _Plan | _Entry] | None = None
        self._writers: list[tuple[str, Callable[[Any], Any]]] | None = None

    @property
    def within(self) -> "dict[int, _Plan | _Entry]":
        """The plans of the fields with values inside (messages, and entries of dicts), by the numbers of the fields."""
        if self._within is None:
            self._within = {}
            for field in self.fields:
                plan = _plan_of(field.message) if field.message else None
                if field.key is not None:
                    self._within[field.number] = _Entry({2: plan} if plan else {})
                elif plan:
                    self._within[field.number] = plan
        return self._within

    def read(self, wire: WireMessage) -> Any:
        if self._readers is None:
            self._readers = {field.name: field.reader() for field in self.fields}
        readers = self._readers
        return self.kind(**{field.name: readers[field.name](value) for field, value in wire.ListFields()})

    def write(self, message: Message) -> WireMessage:
        if self._writers is None:
            self._writers = [(field.name, field.writer()) for field in self.fields]
        values = {}
        for name, writer in self._writers:
            value = getattr(message, name)
            if value is not None:
                values[name] = writer(value)
        return self.wire(**values)


def _count(plan: _Plan, data: bytes, most: int) -> int:
    """Count the values of a message, those of its messages included; counting ends behind `most`.

    What is no message is not told here: whoever reads it finds that out.
    """
    count = 0
    waiting: list[tuple[_Plan | _Entry, int, int]] = [(plan, 0, len(data))]
    while waiting and count <= most:
        where, position, end = waiting.pop()
        within = where.within
        while position < end and count <= most:
            count += 1
            tag, position = _varint(data, position, end)
            match tag & 7:
                case 0:
                    _, position = _varint(data, position, end)
                case 1:
                    position += 8
                case 2:
                    length, position = _varint(data, position, end)
                    inner = within.get(tag >> 3)
                    if tag >> 3 in where.packed:
                        count += length
                    if inner is not None and position + length <= end:
                        waiting.append((inner, position, position + length))
                    position += length
                case 5:
                    position += 4
    return count


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, position


def _name(kind: type[Message]) -> str:
    return f"husk.{kind.__module__.rpartition('.')[2]}_{kind.__name__}"


def _plan_of(kind: type[Message]) -> _Plan:
    # A subclass must not take its parent's.
    plan: _Plan | None = kind.__dict__.get("_plan")
    if plan is None:
        with _describing:
            if "_plan" not in kind.__dict__:
                _describe(kind)
        plan = kind._plan
        assert plan is not None
    return plan


def _describe(kind: type[Message]) -> None:
    """Make descriptors of a message and of all that it has, as far as they have none."""
    fields: dict[type[Message], list[_Field]] = {}
    _gather(kind, fields)
    file = f"{_name(kind)}.proto"
    depends = sorted({_files[one] for one in _met(fields) if one in _files})
    messages = [_description(one, its_fields) for one, its_fields in fields.items()]
    _core.add(protobuf_core.file(file, "husk", depends, messages))
    for one, its_fields in fields.items():
        _files[one] = file
        one._plan = _Plan(one, its_fields)


def _description(kind: type[Message], fields: list[_Field]) -> bytes:
    message = Description(_name(kind).removeprefix("husk."))
    for field in fields:
        field.describe(message, _name(kind))
    return message.encoded()


def _met(fields: dict[type[Message], list[_Field]]) -> Iterator[type[Message]]:
    return (field.message for several in fields.values() for field in several if field.message)


def _gather(kind: type[Message], fields: dict[type[Message], list[_Field]]) -> None:
    if kind in fields or kind in _files:
        return
    hints = get_type_hints(kind, include_extras=True)
    fields[kind] = [_Field(name, hints[name]) for name in kind.__struct_fields__]
    for field in fields[kind]:
        if field.message:
            _gather(field.message, fields)
