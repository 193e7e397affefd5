"""Chains of others that drop what is forwarded are found in what nftables prints."""

from collections.abc import Collection

from husk.network.drop_policies import DropPolicy, RememberedPolicies, forwarding, refuses

LISTED = """\
table ip husk {
	chain forward {
		type filter hook forward priority filter; policy accept;
	}
}
table ip filter {
	chain INPUT {
		type filter hook input priority filter; policy drop;
	}
	chain FORWARD {
		type filter hook forward priority filter; policy drop;
	}
	chain DOCKER-USER {
	}
}
table bridge other {
	chain forward {
		type filter hook forward priority 0; policy drop;
	}
}
table inet strict {
	chain through {
		type filter hook forward priority filter + 10; policy drop;
	}
}
"""


def test_chains_that_drop_what_is_forwarded():
    assert forwarding(LISTED) == {
        DropPolicy("ip", "husk", "forward"): False,
        DropPolicy("ip", "filter", "FORWARD"): True,
        DropPolicy("inet", "strict", "through"): True,
    }
    assert forwarding("") == {}


# As firewalld has it: the policy lets all pass, the last rule nothing.
FIREWALLD = """\
table inet firewalld {
	chain filter_INPUT {
		type filter hook input priority filter + 10; policy accept;
		accept
	}

	chain filter_FORWARD {
		type filter hook forward priority filter + 10; policy accept;
		ct state { established, related } accept
		jump filter_FORWARD_ZONES
		REST
	}
}
"""


def test_chains_that_end_with_a_rule_for_the_rest():
    for rest in ("drop", "reject with icmpx admin-prohibited", "counter packets 1 bytes 60 drop", "reject"):
        assert refuses("filter_FORWARD", FIREWALLD.replace("REST", rest))
    for rest in ("ct state invalid drop", 'iifname "eth0" reject', "accept"):
        assert not refuses("filter_FORWARD", FIREWALLD.replace("REST", rest))
    assert not refuses("filter_INPUT", FIREWALLD) and not refuses("nobody", FIREWALLD)


def test_the_warning_names_the_chain():
    assert "chain FORWARD of the nftables table ip filter drops" in DropPolicy("ip", "filter", "FORWARD").warning


def test_rules_are_listed_again_when_any_has_changed() -> None:
    looked: list[tuple[str, ...]] = []
    policy = DropPolicy("ip", "filter", "FORWARD")
    generation = 1

    def look(interfaces: Collection[str]) -> list[DropPolicy]:
        looked.append(tuple(interfaces))
        return [policy]

    remembered = RememberedPolicies(look, lambda: generation)
    for interfaces in (("a",), ("a",), ("a", "b")):
        assert remembered.look(interfaces) == [policy]
    assert looked == [("a",), ("a", "b")]
    generation = 2
    remembered.look(("a", "b"))
    assert len(looked) == 3


def test_a_host_that_does_not_tell_has_no_policies() -> None:
    def refused() -> int:
        raise PermissionError(1, "Operation not permitted")

    assert RememberedPolicies(generation=refused).look(()) == []
