"""Structs are written to protobuf's bytes and read from them, with the numbers that they declare."""

from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as some

from husk.api.buildkit.messages import control, gateway, ops
from husk.errors import InvalidParameter
from husk.rpc.protobuf import Int32, Message, Uint32, Uint64


class Small(Message):
    number: Annotated[Int32, 1] = 0
    text: Annotated[str, 2] = ""


class Large(Message):
    small: Annotated[Small | None, 1] = None
    many: Annotated[list[Small], 2] = []
    texts: Annotated[list[str], 3] = []
    by_name: Annotated[dict[str, Small], 4] = {}
    by_number: Annotated[dict[int, str], 5] = {}
    choice: Annotated[Uint32 | None, 6] = None
    raw: Annotated[bytes, 7] = b""
    again: Annotated["Large | None", 8] = None


class Numbers(Message):
    small: Annotated[Int32, 1] = 0
    large: Annotated[int, 2] = 0
    natural: Annotated[Uint32, 3] = 0
    very_large: Annotated[Uint64, 17] = 0
    yes: Annotated[bool, 5] = False
    many: Annotated[list[Int32], 6] = []
    flags: Annotated[list[bool], 7] = []
    counts: Annotated[dict[str, Int32], 8] = {}


class Parts(Message):
    small: Annotated[Small | None, 1] = None
    many: Annotated[list[Small], 2] = []
    again: Annotated["Parts | None", 3] = None
    choice: Annotated[Uint32 | None, 4] = None
    raw: Annotated[bytes, 5] = b""
    numbers: Annotated[list[Int32], 6] = []
    flag: Annotated[bool, 7] = False
    large: Annotated[int, 8] = 0


def test_fields_have_the_bytes_that_protobuf_has_for_them() -> None:
    assert Small(number=-1, text="é").encode() == b"\x08" + b"\xff" * 9 + b"\x01" + b"\x12\x02\xc3\xa9"
    assert Small().encode() == b""


def test_everything_that_can_be_declared_comes_back() -> None:
    message = Large(
        small=Small(1, "one"),
        many=[Small(2), Small(3)],
        texts=["a", ""],
        by_name={"x": Small(4)},
        by_number={7: "seven"},
        choice=0,
        raw=b"\xff",
        again=Large(texts=["inner"]),
    )
    assert Large.decode(message.encode()) == message


def test_what_is_absent_is_none_and_what_is_empty_is_there() -> None:
    assert Large.decode(b"") == Large()
    there = Large.decode(Large(small=Small(), choice=0).encode())
    assert there.small == Small() and there.choice == 0


def test_fields_that_are_not_declared_are_ignored() -> None:
    assert Small.decode(Large(small=Small(1), raw=b"x").encode() + b"\x12\x01t").text == "t"


@pytest.mark.parametrize("data", [b"\xff", b"\x12\x05ab", b"\x12\x01\xff"])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidParameter, match="Small"):
        Small.decode(data)


def test_a_message_that_another_one_began_keeps_its_own_description() -> None:
    mount = ops.Mount(ssh_opt=ops.SSHOpt(id="default"), secret_opt=ops.SecretOpt(id="npm"))
    assert ops.Mount.decode(mount.encode()) == mount


def test_messages_of_builds_come_back() -> None:
    inner = ops.Definition(definition=[b"op"], metadata={"sha256:x": ops.OpMetadata(caps={"file": True})})
    solve = control.SolveRequest(ref="r", definition=inner, frontend_inputs={"context": inner})
    assert control.SolveRequest.decode(solve.encode()) == solve
    message = gateway.ExecMessage(process_id="p", done=gateway.Empty())
    assert gateway.ExecMessage.decode(message.encode()) == message


def test_entries_of_a_dict_come_in_the_order_of_their_keys() -> None:
    assert Numbers(counts={"b": 1, "": 0}).encode() == b"\x42\x04\x0a\x00\x10\x00\x42\x05\x0a\x01b\x10\x01"
    assert list(Numbers.decode(b"\x42\x05\x0a\x01b\x10\x01\x42\x00").counts.items()) == [("", 0), ("b", 1)]


def test_a_number_that_is_too_large_is_not_written() -> None:
    for wrong in (Numbers(small=1 << 31), Numbers(natural=-1), Numbers(large=1 << 63), Numbers(very_large=1 << 64)):
        with pytest.raises(ValueError, match="is no number of"):
            wrong.encode()


def test_a_message_within_too_many_others_is_refused() -> None:
    message = Large(texts=["inner"])
    for _ in range(101):
        message = Large(again=message)
    data = message.encode()
    with pytest.raises(InvalidParameter, match="too deep"):
        Large.decode(data)


# --- beside the library `protobuf` -----------------------------------------------------------------------------------

F = FieldDescriptorProto
TYPES = {str: F.TYPE_STRING, bytes: F.TYPE_BYTES, bool: F.TYPE_BOOL, "int64": F.TYPE_INT64}
TYPES |= {"int32": F.TYPE_INT32, "uint32": F.TYPE_UINT32, "uint64": F.TYPE_UINT64}


def by_library(kind: type[Message]) -> Any:
    """The library's class for a message that is declared here."""
    file = FileDescriptorProto(name="x.proto", package="x", syntax="proto3")
    described: set[type[Message]] = set()

    def typed(into: FieldDescriptorProto, declared: Any) -> None:
        notes: list[Any] = []
        if get_origin(declared) is Annotated:
            declared, *notes = get_args(declared)
        if declared is int:
            into.type = TYPES[notes[0] if notes else "int64"]
        elif declared in TYPES:
            into.type = TYPES[declared]
        else:
            into.type, into.type_name = F.TYPE_MESSAGE, f".x.{declared.__name__}"
            describe(declared)

    def describe(kind: type[Message]) -> None:
        if kind in described:
            return
        described.add(kind)
        message = DescriptorProto(name=kind.__name__)
        for name, hint in get_type_hints(kind, include_extras=True).items():
            if get_origin(hint) is not Annotated:
                continue
            declared, *notes = get_args(hint)
            # `Annotated[Int32, 1]` is one with two notes.
            number = next(note for note in notes if isinstance(note, int))
            if words := [note for note in notes if isinstance(note, str)]:
                declared = Annotated[declared, words[0]]
            field = message.field.add(name=name, number=number, label=F.LABEL_OPTIONAL)
            if get_origin(declared) is dict:
                key, value = get_args(declared)
                entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
                entry.options.map_entry = True
                typed(entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL), key)
                typed(entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL), value)
                field.label, field.type = F.LABEL_REPEATED, F.TYPE_MESSAGE
                field.type_name = f".x.{kind.__name__}.{entry.name}"
            elif get_origin(declared) is list:
                field.label = F.LABEL_REPEATED
                typed(field, get_args(declared)[0])
            elif get_origin(declared) in (Union, UnionType):
                typed(field, next(one for one in get_args(declared) if one is not NoneType))
                if field.type != F.TYPE_MESSAGE:
                    field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
                    message.oneof_decl.add(name=f"_{name}")
            else:
                typed(field, declared)
        file.message_type.append(message)

    describe(kind)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"x.{kind.__name__}"))


def in_library(library: Any, message: Message) -> Any:
    """The same message as one of the library's."""
    wire = library()
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if isinstance(value, Message):
            part = getattr(wire, name)
            part.SetInParent()
            part.CopyFrom(in_library(type(part), value))
        elif isinstance(value, dict):
            for key, one in value.items():
                if isinstance(one, Message):
                    part = getattr(wire, name)[key]
                    part.CopyFrom(in_library(type(part), one))
                else:
                    getattr(wire, name)[key] = one
        elif isinstance(value, list) and value and isinstance(value[0], Message):
            for one in value:
                part = getattr(wire, name).add()
                part.CopyFrom(in_library(type(part), one))
        elif isinstance(value, list):
            getattr(wire, name).extend(value)
        elif value is not None:
            setattr(wire, name, value)
    return wire


smalls = some.builds(Small, number=some.integers(-(1 << 31), (1 << 31) - 1), text=some.text(max_size=5))
larges = some.recursive(
    some.just(Large()),
    lambda inner: some.builds(
        Large,
        small=some.none() | smalls,
        many=some.lists(smalls, max_size=3),
        texts=some.lists(some.text(max_size=3), max_size=3),
        by_name=some.dictionaries(some.text(max_size=3), smalls, max_size=3),
        by_number=some.dictionaries(some.integers(-(1 << 63), (1 << 63) - 1), some.text(max_size=3), max_size=3),
        choice=some.none() | some.integers(0, (1 << 32) - 1),
        raw=some.binary(max_size=200),
        again=some.none() | inner,
    ),
    max_leaves=4,
)
numbers = some.builds(
    Numbers,
    small=some.integers(-(1 << 31), (1 << 31) - 1),
    large=some.integers(-(1 << 63), (1 << 63) - 1),
    natural=some.integers(0, (1 << 32) - 1),
    very_large=some.integers(0, (1 << 64) - 1),
    yes=some.booleans(),
    many=some.lists(some.integers(-5, 300), max_size=4),
    flags=some.lists(some.booleans(), max_size=4),
    counts=some.dictionaries(some.text(max_size=3), some.integers(-3, 3), max_size=3),
)
parts = some.recursive(
    some.just(Parts()),
    lambda inner: some.builds(
        Parts,
        small=some.none() | smalls,
        many=some.lists(smalls, max_size=3),
        choice=some.none() | some.integers(0, (1 << 32) - 1),
        raw=some.binary(max_size=200),
        again=some.none() | inner,
        numbers=some.lists(some.integers(-5, 300), max_size=4),
        flag=some.booleans(),
        large=some.integers(-(1 << 63), (1 << 63) - 1),
    ),
    max_leaves=4,
)
LIBRARY: dict[type[Message], Any] = {kind: by_library(kind) for kind in (Large, Numbers, Parts)}


@settings(max_examples=200, deadline=None)
@given(larges | numbers | parts)
def test_the_bytes_are_those_of_the_library(message: Message) -> None:
    library = LIBRARY[type(message)]
    data = message.encode()
    wire = in_library(library, message)
    assert library.FromString(data) == wire
    # Each library has an order of its own for entries of a dict; here it is that of Go's, by the key.
    entries = sorted(data), sorted(wire.SerializeToString(deterministic=True))
    assert entries[0] == entries[1]
    if not any(isinstance(getattr(message, name), dict) for name in message.__struct_fields__):
        assert data == wire.SerializeToString(deterministic=True)
    assert type(message).decode(data) == message


@settings(max_examples=400, deadline=None)
@given(some.data())
def test_what_the_library_reads_is_read_alike(data: Any) -> None:
    """Bytes of two messages, with some of them changed: fields come twice, in another form, or broken.

    Without dicts: the library leaves out entries with a field that it does not know, which others do not.
    """
    said = bytearray(data.draw(parts).encode() + data.draw(parts | numbers).encode())
    for _ in range(data.draw(some.integers(0, 3))):
        if said:
            said[data.draw(some.integers(0, len(said) - 1))] = data.draw(some.integers(0, 255))
    try:
        wire = LIBRARY[Parts].FromString(bytes(said))
    except DecodeError:
        with pytest.raises(InvalidParameter):
            Parts.decode(bytes(said))
    else:
        found = in_library(LIBRARY[Parts], Parts.decode(bytes(said)))
        wire.DiscardUnknownFields()
        assert found == wire


@pytest.mark.parametrize("module", [control, gateway, ops])
def test_every_message_of_builds_is_written_as_the_library_does(module: Any) -> None:
    """With all of its plain fields set: numbers and kinds are as declared."""
    for kind in vars(module).values():
        if not (isinstance(kind, type) and issubclass(kind, Message)) or kind is Message:
            continue
        message = kind()
        for name in kind.__struct_fields__:
            value = getattr(message, name)
            filled = {str: "x", bytes: b"y", int: 7, bool: True}.get(type(value))
            if filled is not None:
                setattr(message, name, filled)
        library = by_library(kind)
        assert message.encode() == in_library(library, message).SerializeToString(deterministic=True), kind
