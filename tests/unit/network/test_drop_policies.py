"""Chains of others that drop what is forwarded are found in what nftables prints."""

from husk.network.drop_policies import DropPolicy, find

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
    assert find(LISTED) == [DropPolicy("ip", "filter", "FORWARD"), DropPolicy("inet", "strict", "through")]
    assert find("") == []


def test_the_warning_names_the_chain():
    assert "chain FORWARD of the nftables table ip filter drops" in DropPolicy("ip", "filter", "FORWARD").warning
