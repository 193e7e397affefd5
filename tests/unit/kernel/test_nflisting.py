"""Content of a table, out of what the kernel dumps: only its own chains and rules, in order."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from husk.kernel import nflisting
from husk.kernel.netlink import NetlinkMessage, attribute, nested, text
from husk.kernel.nflisting import Chain, elements, generation, has_table, shape, some_of_shape

HEAD = bytes(4)


class FakeSocket:
    """Answers each request by its words."""

    dumps: ClassVar[dict[str, Sequence[bytes]]] = {}
    asked: ClassVar[list[NetlinkMessage]] = []

    def __init__(self, protocol: int) -> None:
        assert protocol == 12

    def __enter__(self) -> "FakeSocket":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def ask(self, message: NetlinkMessage) -> bytes:
        return self.dump(message)[0]

    def dump(self, message: NetlinkMessage) -> list[bytes]:
        self.asked.append(message)
        found: Any = next((dumped for words, dumped in self.dumps.items() if words in message[3]), None)
        if found is None:
            raise OSError(2, "No such file or directory")
        return [HEAD + body for body in found]


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> type[FakeSocket]:
    FakeSocket.dumps, FakeSocket.asked = {}, []
    monkeypatch.setattr(nflisting, "NetlinkSocket", FakeSocket)
    return FakeSocket


def chain(table: str, name: str, hook: bytes = b"") -> bytes:
    return text(1, table) + text(3, name) + (attribute(4, hook) if hook else b"")


def rule(table: str, name: str, expressions: bytes) -> bytes:
    return text(1, table) + text(2, name) + attribute(4, expressions)


def test_tables_are_known_by_their_whole_names(kernel: type[FakeSocket]) -> None:
    kernel.dumps = {"tables": [text(1, "husk-wg"), text(1, "other")]}
    assert has_table("ip6", "husk-wg") and not has_table("ip6", "husk")


def test_a_table_is_its_chains_with_their_hooks_and_its_rules_in_order(kernel: type[FakeSocket]) -> None:
    kernel.dumps = {
        "chains": [chain("husk", "in", b"hook"), chain("husk", "plain"), chain("other", "in")],
        "rules": [rule("husk", "in", b"bbbb"), rule("other", "in", b"xxxx"), rule("husk", "in", b"aaaa")],
    }
    found = shape("ip", "husk")
    assert found == {"in": Chain(b"hook", b"", b"", (b"bbbb", b"aaaa")), "plain": Chain(b"", b"", b"", ())}
    assert found != shape("ip", "other") and shape("ip", "nothing") == {}


def test_some_chains_are_asked_for_by_their_names(kernel: type[FakeSocket]) -> None:
    kernel.dumps = {"list chain to-a": [chain("husk", "to-a")], "rules": [rule("husk", "to-a", b"aaaa")]}
    assert some_of_shape("ip", "husk", ["to-a", "gone"]) == {"to-a": Chain(b"", b"", b"", (b"aaaa",))}
    one, rules, _ = kernel.asked
    assert b"husk\0" in one[2] and b"to-a\0" in one[2] and b"to-a\0" in rules[2]


def test_a_chain_that_cannot_be_looked_at_is_not_one_that_is_gone(
    kernel: type[FakeSocket], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: FakeSocket, message: NetlinkMessage) -> bytes:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(FakeSocket, "ask", refused)
    with pytest.raises(PermissionError):
        some_of_shape("ip", "husk", ["to-a"])


def test_families_are_asked_for_apart(kernel: type[FakeSocket]) -> None:
    kernel.dumps = {"chains": [], "rules": []}
    for family in ("ip", "ip6", "bridge"):
        shape(family, "husk")
    assert [message[2][0] for message in kernel.asked[::2]] == [2, 10, 7]


def element(key: bytes, data: bytes = b"", flags: int | None = None) -> bytes:
    parts = [nested(1, attribute(1, key))] + ([nested(2, attribute(1, data))] if data else [])
    return nested(1, *parts, *([attribute(3, flags.to_bytes(4))] if flags is not None else []))


def test_elements_are_keys_with_their_data_and_of_intervals_the_beginnings(kernel: type[FakeSocket]) -> None:
    kernel.dumps = {
        "elements of husk ports": [
            nested(3, element(b"key1", b"data"), element(b"key2")),
            nested(3, element(b"from", flags=0), element(b"end.", flags=1)),
        ]
    }
    assert elements("ip", "husk", "ports") == {(b"key1", b"data"), (b"key2", b""), (b"from", b"")}
    with pytest.raises(FileNotFoundError):
        elements("ip", "husk", "nothing")


def test_the_generation_of_all_rules(kernel: type[FakeSocket]) -> None:
    kernel.dumps = {"generation": [attribute(1, (258).to_bytes(4, "big"))]}
    assert generation() == 258
