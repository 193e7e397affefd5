"""The core of the library `protobuf`: descriptions of messages in, classes of messages out.

    core = Core()
    core.add(file([...]))              # descriptions, as bytes
    core.message_class("husk.Name")    # reads and writes such messages

The library's public modules bring an implementation of all of it in Python with them, and messages that describe
messages: 1.8 MiB that nothing here uses. So its core in C is asked directly, as the public `message_factory` asks it.
Where there is no such core, the public modules are used.

Descriptions are messages themselves (`google/protobuf/descriptor.proto`). The few fields of theirs that are needed to
describe ours are written here.
"""

import importlib
from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message as WireMessage

_CORE = "google._upb._message"

# Numbers of types and labels of fields.
BOOL, BYTES, INT32, INT64, MESSAGE, STRING, UINT32, UINT64 = 8, 12, 5, 3, 11, 9, 13, 4
_OPTIONAL, _REPEATED = 1, 3


class Core:
    def __init__(self, core: str = _CORE) -> None:
        """`core` is the module that the library's core is."""
        self._classes: dict[str, type[WireMessage]] = {}
        try:
            module: Any = importlib.import_module(core)
            self._meta: Any = module.MessageMeta
            self._pool: Any = module.DescriptorPool()
        except (ImportError, AttributeError):
            from google.protobuf.descriptor_pool import DescriptorPool

            self._meta = None
            self._pool = DescriptorPool()

    def add(self, file: bytes) -> None:
        """Messages may name only messages of the same file, or of files that it depends on."""
        self._pool.AddSerializedFile(file)

    def message_class(self, name: str) -> type[WireMessage]:
        return self._class_of(self._pool.FindMessageTypeByName(name))

    def _class_of(self, descriptor: Any) -> type[WireMessage]:
        if self._meta is None:
            from google.protobuf.message_factory import GetMessageClass

            return GetMessageClass(descriptor)
        if (made := self._classes.get(descriptor.full_name)) is None:
            made = self._meta(descriptor.name, (WireMessage,), {"DESCRIPTOR": descriptor, "__module__": None})
            self._classes[descriptor.full_name] = made
            # The core does not make the classes of what is within.
            for field in descriptor.fields:
                if field.message_type:
                    self._class_of(field.message_type)
        return made


def file(name: str, package: str, depends: Iterable[str], messages: Iterable[bytes]) -> bytes:
    """A file of messages."""
    return (
        _part(1, name)
        + _part(2, package)
        + b"".join(_part(3, other) for other in depends)
        + b"".join(_part(4, message) for message in messages)
        + _part(12, "proto3")
    )


class Description:
    """That of one message."""

    def __init__(self, name: str, *, of_map: bool = False) -> None:
        self._parts = [_part(1, name)]
        if of_map:
            self._parts.append(_part(7, _part(7, 1)))  # options: map_entry
        self._oneofs = 0

    def encoded(self) -> bytes:
        return b"".join(self._parts)

    def contain(self, inner: "Description") -> None:
        self._parts.append(_part(3, inner.encoded()))

    def field(
        self, name: str, number: int, type: int, type_name: str = "", *, repeated: bool = False, optional: bool = False
    ) -> None:
        """`optional`: it may be absent, which is something else than empty."""
        label = _REPEATED if repeated else _OPTIONAL
        field = _part(1, name) + _part(3, number) + _part(4, label) + _part(5, type)
        if type_name:
            field += _part(6, type_name)
        if optional:
            field += _part(9, self._oneofs) + _part(17, 1)  # a oneof of its own, and why
            self._parts.append(_part(8, _part(1, f"_{name}")))
            self._oneofs += 1
        self._parts.append(_part(2, field))


def _part(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    encoded = b""
    while value > 0x7F:
        encoded += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return encoded + bytes((value,))
