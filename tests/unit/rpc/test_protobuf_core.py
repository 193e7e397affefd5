"""Messages that are described as bytes become classes, with the library's core alone or with all of the library."""

import subprocess
import sys

import pytest

from husk.rpc.protobuf_core import INT64, MESSAGE, STRING, Core, Description, file


def described() -> bytes:
    inner = Description("Inner")
    inner.field("text", 1, STRING)
    outer = Description("Outer")
    outer.field("number", 300, INT64, optional=True)
    outer.field("inner", 2, MESSAGE, ".test.Inner")
    outer.field("many", 3, MESSAGE, ".test.Inner", repeated=True)
    entry = Description("NamesEntry", of_map=True)
    entry.field("key", 1, STRING)
    entry.field("value", 2, MESSAGE, ".test.Inner")
    outer.contain(entry)
    outer.field("names", 4, MESSAGE, ".test.Outer.NamesEntry", repeated=True)
    outer.field("other", 5, STRING, optional=True)
    return file("test.proto", "test", [], [inner.encoded(), outer.encoded()])


@pytest.mark.parametrize("core", ["google._upb._message", "no.such.core"])
def test_a_message_has_the_same_bytes_with_the_core_and_without_it(core: str) -> None:
    made = Core(core)
    made.add(described())
    outer, inner = made.message_class("test.Outer"), made.message_class("test.Inner")
    assert made.message_class("test.Outer") is outer
    there = {"text": "x"}
    message = outer(number=0, inner=inner(**there), many=[inner()], names={"k": inner(**there)})
    data = message.SerializeToString(deterministic=True)
    assert data == b"\x12\x03\n\x01x" + b"\x1a\x00" + b"\x22\x08\n\x01k\x12\x03\n\x01x" + b"\xe0\x12\x00"
    assert [(field.name, field.number) for field, _ in outer.FromString(data).ListFields()] == [
        ("inner", 2),
        ("many", 3),
        ("names", 4),
        ("number", 300),
    ]


def test_a_file_may_depend_on_another_one() -> None:
    core = Core()
    core.add(described())
    third = Description("Third")
    third.field("outer", 1, MESSAGE, ".test.Outer")
    core.add(file("third.proto", "test", ["test.proto"], [third.encoded()]))
    assert core.message_class("test.Third").FromString(b"\n\x00").SerializeToString() == b"\n\x00"


def test_what_only_the_implementation_in_python_needs_is_not_loaded() -> None:
    code = "import husk.rpc.protobuf, sys; print('google.protobuf.internal.python_message' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
