"""Structs are written to protobuf's bytes and read from them, with the numbers that they declare."""

from typing import Annotated

import pytest

from husk.builder.protocol.messages import containers, control, gateway, ops
from husk.errors import InvalidParameter
from husk.rpc import protobuf
from husk.rpc.protobuf import Int32, Message, Uint32


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
    assert ops.Definition.decode(inner.encode()) == inner
    solve = control.SolveRequest(ref="r", definition=inner.encode(), frontend_inputs={"context": b"x"})
    assert control.SolveRequest.decode(solve.encode()) == solve
    message = containers.ExecMessage(process_id="p", done=gateway.Empty())
    assert containers.ExecMessage.decode(message.encode()) == message


def test_a_message_of_many_values_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    many = gateway.WarnRequest(ranges=[ops.Range() for _ in range(30_000)]).encode()
    read: list[object] = []
    monkeypatch.setattr(protobuf._Plan, "read", lambda plan, wire: read.append(wire))
    with pytest.raises(InvalidParameter, match="more than 10000 values"):
        gateway.WarnRequest.decode(many)
    assert read == []


@pytest.mark.parametrize(
    ("message", "count"),
    [
        (gateway.WarnRequest(digest="d", short=b"x" * 5000, ranges=[ops.Range(ops.Position(1), ops.Position(2))]), 7),
        (ops.Definition([b"a", b"b"], {"k": ops.OpMetadata(description={"a": "b", "c": "d"})}), 11),
        (gateway.SolveRequest(definition=b"\x0a\x00" * 5000, frontend_opt={"a": "b"}), 4),
        (ops.Meta(args=["x"], valid_exit_codes=[0] * 50), 52),
    ],
)
def test_values_are_counted_in_all_that_a_message_has(message: Message, count: int) -> None:
    plan = protobuf._plan_of(type(message))
    data = message.encode()
    assert protobuf._count(plan, data, 1000) == count
    assert protobuf._count(plan, data, count - 2) > count - 2, "enough to know"
    for cut in range(len(data) if len(data) < 200 else 0):
        protobuf._count(plan, data[:cut], 1000)


def test_what_is_ours_may_have_more() -> None:
    many = ops.Meta(args=["x"] * 20_000)
    with pytest.raises(InvalidParameter):
        ops.Meta.decode(many.encode())
    assert ops.Meta.decode(many.encode(), most=None) == many
