"""Structs are written to protobuf's bytes and read from them, with the numbers that they declare."""

from typing import Annotated

import pytest

from husk.builder.graph import ops
from husk.builder.protocol.messages import control, gateway
from husk.errors import InvalidParameter
from husk.rpc import protobuf
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
    several: Annotated[list[Int32], 1] = []
    flags: Annotated[list[bool], 2] = []
    unsigned: Annotated[Uint64, 3] = 0


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


@pytest.mark.parametrize(
    "data",
    [
        *(b"\xff", b"\x12\x05ab", b"\x12\x01\xff", b"\x08", b"\x08" + b"\xff" * 10 + b"\x01", b"\x00\x00"),
        *(b"\x0b\x0c", b"\x0f", b"\x1d123", b"\x19\x00", b"\x88\x80\x80\x80\x80\x80\x01\x00"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidParameter, match="Small"):
        Small.decode(data)


def test_the_parts_of_a_message_are_put_together_and_of_other_values_the_last_counts() -> None:
    parts = Large(small=Small(1, "one"), raw=b"a").encode() + Large(small=Small(2), raw=b"b").encode()
    assert Large.decode(parts) == Large(small=Small(2, "one"), raw=b"b")


def test_numbers_of_a_list_come_one_by_one_or_together() -> None:
    assert Numbers.decode(b"\x08\x01\x0a\x03\x02\xac\x02\x08\x03").several == [1, 2, 300, 3]
    assert Numbers(several=[1, 300], flags=[True, False]).encode() == b"\x0a\x03\x01\xac\x02\x12\x02\x01\x00"
    with pytest.raises(InvalidParameter, match="behind its piece"):
        Numbers.decode(b"\x0a\x01\xac\x02")


def test_numbers_of_any_size_are_cut_to_their_types_and_refused_where_there_is_no_room() -> None:
    assert Numbers.decode(b"\x18" + b"\xff" * 9 + b"\x01").unsigned == 2**64 - 1
    assert Small.decode(b"\x08\x80\x80\x80\x80\x08").number == -(2**31)
    for number in (2**31, -(2**31) - 1):
        with pytest.raises(ValueError, match="no room"):
            Small(number=number).encode()
    assert Small.decode(Small(number=-(2**31)).encode()).number == -(2**31)
    with pytest.raises(ValueError, match="no room"):
        Numbers(unsigned=-1).encode()


def test_equal_messages_have_equal_bytes() -> None:
    one, other = Large(by_number={2: "b", 1: "a"}), Large(by_number={1: "a", 2: "b"})
    assert one.encode() == other.encode() == b"\x2a\x05\x08\x01\x12\x01a\x2a\x05\x08\x02\x12\x01b"
    assert list(Large.decode(one.encode()).by_number) == [1, 2]


def test_an_entry_may_lack_its_key_and_its_value() -> None:
    assert Large.decode(b"\x22\x00\x2a\x00") == Large(by_name={"": Small()}, by_number={0: ""})


def test_messages_lie_within_one_another_only_so_deep() -> None:
    def nested(times: int) -> bytes:
        message = Large()
        for _ in range(times):
            message = Large(again=message)
        return message.encode()

    assert Large.decode(nested(99)).again is not None
    with pytest.raises(InvalidParameter, match="within one another"):
        Large.decode(nested(100))


def test_a_message_that_another_one_began_keeps_its_own_description() -> None:
    mount = ops.Mount(ssh_opt=ops.SSHOpt(id="default"), secret_opt=ops.SecretOpt(id="npm"))
    assert ops.Mount.decode(mount.encode()) == mount


def test_messages_of_builds_come_back() -> None:
    inner = ops.Definition(definition=[b"op"], metadata={"sha256:x": ops.OpMetadata(caps={"file": True})})
    assert ops.Definition.decode(inner.encode()) == inner
    solve = control.SolveRequest(ref="r", definition=inner.encode(), frontend_inputs={"context": b"x"})
    assert control.SolveRequest.decode(solve.encode()) == solve
    message = gateway.ExecMessage(process_id="p", done=gateway.Empty())
    assert gateway.ExecMessage.decode(message.encode()) == message


def test_a_message_of_many_values_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    many = gateway.WarnRequest(ranges=[ops.Range() for _ in range(30_000)]).encode()
    read: list[object] = []
    monkeypatch.setattr(protobuf, "_read", lambda *arguments: read.append(arguments))
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
    data = message.encode()
    assert message.count(data, 1000) == count
    assert message.count(data, count - 2) > count - 2, "enough to know"


def test_what_is_ours_may_have_more() -> None:
    many = ops.Meta(args=["x"] * 20_000)
    with pytest.raises(InvalidParameter):
        ops.Meta.decode(many.encode())
    assert ops.Meta.decode(many.encode(), most=None) == many
