"""Contents of an nftables table as the kernel has them: no text that a library writes in its own way."""

import errno
import socket
import struct
from collections.abc import Iterable, Mapping

from msgspec import Struct

from husk.kernel.netlink import NetlinkMessage, NetlinkSocket, attributes, repeated, text

_NETFILTER = 12
_NFTABLES = 10 << 8
_GET_TABLE, _GET_CHAIN, _GET_RULE, _GET_ELEMENTS, _GET_GENERATION = (_NFTABLES | n for n in (1, 4, 7, 13, 16))
_GENERATION = 1
_TABLE_NAME = 1
_CHAIN_TABLE, _CHAIN_NAME, _CHAIN_HOOK, _CHAIN_POLICY, _CHAIN_TYPE = 1, 3, 4, 5, 7
_RULE_TABLE, _RULE_CHAIN, _RULE_EXPRESSIONS = 1, 2, 4
_LIST_TABLE, _LIST_SET, _LIST_ELEMENTS = 1, 2, 3
_ELEMENT_KEY, _ELEMENT_DATA, _ELEMENT_FLAGS = 1, 2, 3
_DATA_VALUE = 1
_INTERVAL_END = 1
_FAMILIES = {"ip": socket.AF_INET, "ip6": socket.AF_INET6, "bridge": socket.AF_BRIDGE}
_HEADER = struct.Struct("!BBH")


class Chain(Struct, frozen=True):
    """A chain: where it is hooked, and the expressions of its rules in order; two are equal when they do the same."""

    hook: bytes
    policy: bytes
    kind: bytes
    rules: tuple[bytes, ...]


# The chains of a table by their names.
Shape = Mapping[str, Chain]


def has_table(family: str, table: str) -> bool:
    """Blocks: call from a thread. Raises OSError."""
    with NetlinkSocket(_NETFILTER) as netlink:
        found = _dump(netlink, NetlinkMessage(_GET_TABLE, 0, _head(family), "list tables"))
    return any(_word(one, _TABLE_NAME) == table.encode() for one in found)


def generation() -> int:
    """A number that is another one after each change of any table of this network namespace. Raises OSError."""
    with NetlinkSocket(_NETFILTER) as netlink:
        told = netlink.ask(NetlinkMessage(_GET_GENERATION, 0, bytes(_HEADER.size), "ask for the generation of rules"))
    return int.from_bytes(attributes(told[_HEADER.size :])[_GENERATION])


def shape(family: str, table: str) -> Shape:
    """Without chains if there is no such table. Blocks: call from a thread. Raises OSError."""
    name, found = table.encode(), {}
    with NetlinkSocket(_NETFILTER) as netlink:
        for told in _dump(netlink, NetlinkMessage(_GET_CHAIN, 0, _head(family), "list chains")):
            if _word(told, _CHAIN_TABLE) == name:
                found[_word(told, _CHAIN_NAME).decode()] = told
        rules = _rules(netlink, family, table)
    return {chain: _chain(told, rules.get(chain, ())) for chain, told in found.items()}


def some_of_shape(family: str, table: str, chains: Iterable[str]) -> Shape:
    """Of these chains, those that are there, at a cost that does not depend on others. Blocks. Raises OSError."""
    found = {}
    with NetlinkSocket(_NETFILTER) as netlink:
        for chain in chains:
            request = _head(family) + text(_CHAIN_TABLE, table) + text(_CHAIN_NAME, chain)
            try:
                told = attributes(
                    netlink.ask(NetlinkMessage(_GET_CHAIN, 0, request, f"list chain {chain}"))[_HEADER.size :]
                )
            except OSError as error:
                if error.errno != errno.ENOENT:
                    raise
                continue
            found[chain] = _chain(told, _rules(netlink, family, table, chain).get(chain, ()))
    return found


def _chain(told: dict[int, bytes], rules: Iterable[bytes]) -> Chain:
    hook, policy, kind = (told.get(one, b"") for one in (_CHAIN_HOOK, _CHAIN_POLICY, _CHAIN_TYPE))
    return Chain(hook, policy, kind, tuple(rules))


def _rules(netlink: NetlinkSocket, family: str, table: str, chain: str = "") -> dict[str, list[bytes]]:
    """The expressions of rules by their chains: of one, or of all where none is named."""
    request = _head(family) + text(_RULE_TABLE, table) + (text(_RULE_CHAIN, chain) if chain else b"")
    name, found = table.encode(), dict[str, list[bytes]]()
    for told in _dump(netlink, NetlinkMessage(_GET_RULE, 0, request, "list rules")):
        if _word(told, _RULE_TABLE) == name:
            found.setdefault(_word(told, _RULE_CHAIN).decode(), []).append(told.get(_RULE_EXPRESSIONS, b""))
    return found


def elements(family: str, table: str, where: str) -> set[tuple[bytes, bytes]]:
    """(key, data) of the elements of a set or map, of intervals their beginnings. Blocks.

    Raises OSError if it is not there.
    """
    request = _head(family) + text(_LIST_TABLE, table) + text(_LIST_SET, where)
    found = set()
    with NetlinkSocket(_NETFILTER) as netlink:
        for part in _dump(netlink, NetlinkMessage(_GET_ELEMENTS, 0, request, f"list elements of {table} {where}")):
            for _, element in repeated(part.get(_LIST_ELEMENTS, b"")):
                held = attributes(element)
                if not int.from_bytes(held.get(_ELEMENT_FLAGS, b"")) & _INTERVAL_END:
                    found.add((_value(held, _ELEMENT_KEY), _value(held, _ELEMENT_DATA)))
    return found


def _head(family: str) -> bytes:
    return _HEADER.pack(_FAMILIES[family], 0, 0)


def _dump(netlink: NetlinkSocket, message: NetlinkMessage) -> list[dict[int, bytes]]:
    return [attributes(payload[_HEADER.size :]) for payload in netlink.dump(message)]


def _word(found: dict[int, bytes], kind: int) -> bytes:
    return found.get(kind, b"").rstrip(b"\0")


def _value(held: dict[int, bytes], kind: int) -> bytes:
    return attributes(held.get(kind, b"")).get(_DATA_VALUE, b"")
