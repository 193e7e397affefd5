"""Chains of other firewalls on this host that drop the packets of containers.

In nftables a packet passes only if every table lets it pass: somebody's `drop` outvotes our `accept`. dockerd on the
same host, for one, makes `drop` the policy of the chain FORWARD and then accepts what is its own; firewalld's chains
end with a rule that rejects the rest. We do not write into the rules of others: we tell what is so. Rules of the old
kind (`iptables-legacy`) are not seen from here: `legacy_rules` looks at them.
"""

import logging
from collections.abc import Callable, Collection

from msgspec import Struct, structs

from husk.errors import SystemFault
from husk.kernel import nflisting
from husk.kernel.nftables import Nftables
from husk.network.firewall_owners import hint, owner_of
from husk.text.patterns import pattern

log = logging.getLogger(__name__)

_TABLE = pattern(r"table (\S+) (\S+) \{")
_CHAIN = pattern(r"\tchain (\S+) \{")
_FORWARDS = pattern(r"\t\ttype filter hook forward priority [^;]+; policy (accept|drop);")
# A rule for whatever is left.
_THE_REST = pattern(r"\t\t(?:counter(?: packets \d+ bytes \d+)? )?(?:drop|reject(?: with .*)?)")
# `inet` is for both kinds of packets; others, such as `bridge`, see none that are routed.
_FAMILIES = ("ip", "ip6", "inet")
# Tables of Husk, of this daemon and of others: they drop what is theirs to drop.
_OURS = "husk"


class DropPolicy(Struct, frozen=True):
    """A chain that drops, or rejects, what its rules do not accept."""

    family: str
    table: str
    chain: str
    # Whose it is, if that can be seen: a key of `firewall_owners.CURES`.
    owner: str = ""

    @property
    def where(self) -> str:
        return f"chain {self.chain} of the nftables table {self.family} {self.table}"

    @property
    def warning(self) -> str:
        return (
            f"WARNING: {self.where} drops forwarded packets by default: containers reach other networks, and are "
            f"reached at published ports, only where its rules accept that{hint(self.owner)}"
        )


def forwarding(chains: str) -> dict[DropPolicy, bool]:
    """Chains that forwarded packets go through, in what `nft list chains` prints: whether their policy drops. Pure."""
    found = {}
    family = table = chain = ""
    for line in chains.splitlines():
        if match := _TABLE.fullmatch(line):
            family, table = match[1], match[2]
        elif match := _CHAIN.fullmatch(line):
            chain = match[1]
        elif (match := _FORWARDS.fullmatch(line)) and family in _FAMILIES:
            found[DropPolicy(family, table, chain)] = match[1] == "drop"
    return found


def refuses(chain: str, table: str) -> bool:
    """Return True if the last rule of a chain, in what `nft list table` prints, lets nothing of the rest pass. Pure."""
    _, _, body = table.partition(f"\tchain {chain} {{\n")
    rules = body.partition("\n\t}")[0].splitlines()
    return bool(rules) and _THE_REST.fullmatch(rules[-1]) is not None


def look(interfaces: Collection[str]) -> list[DropPolicy]:
    """The policies of this host. A table with a word about one of our interfaces is none: somebody thought of us.

    Blocks: call from a thread.
    """
    try:
        nftables = Nftables()
        chains = forwarding(nftables.run("list chains\n"))
        others = {each: drops for each, drops in chains.items() if not each.table.startswith(_OURS)}
        tables = {(o.family, o.table): nftables.run(f"list table {o.family} {o.table}\n") for o in others}
    except SystemFault as error:
        log.debug("the rules of others cannot be looked at: %s", error)
        return []
    return [
        structs.replace(each, owner=owner_of(each.table, tables[each.family, each.table]))
        for each, drops in others.items()
        if (drops or refuses(each.chain, tables[each.family, each.table]))
        and not any(f'"{name}"' in tables[each.family, each.table] for name in interfaces)
    ]


class RememberedPolicies:
    """The findings of `look`, as long as nobody changes any rule: a monitor may ask every second, and to list all
    rules of a host takes milliseconds in which no port is published."""

    def __init__(
        self,
        find: Callable[[Collection[str]], list[DropPolicy]] = look,
        generation: Callable[[], int] = nflisting.generation,
    ) -> None:
        """`generation` tells of each change of rules by another number."""
        self._find, self._generation = find, generation
        self._found: list[DropPolicy] = []
        self._stamp: tuple[int, frozenset[str]] | None = None

    def look(self, interfaces: Collection[str]) -> list[DropPolicy]:
        """Blocks: call from a thread."""
        try:
            # Before the look: a change meanwhile makes it one that is not used again.
            stamp = self._generation(), frozenset(interfaces)
        except OSError as error:
            log.debug("the rules of others cannot be looked at: %s", error)
            return []
        if stamp != self._stamp:
            self._found = self._find(interfaces)
            self._stamp = stamp
        return self._found
