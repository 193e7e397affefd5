"""Owners of a firewall, and remedies."""

import pytest

from husk.network.firewall_owners import CURES, cure_of, hint, owner_of


@pytest.mark.parametrize(
    ("table", "rules", "owner"),
    [
        ("filter", "\tchain ufw-before-forward {\n", "ufw"),
        ("filter", "-P FORWARD DROP\n-A FORWARD -j ufw6-before-forward\n", "ufw"),
        ("firewalld", "", "firewalld"),
        ("filter", "-A FORWARD -j FORWARD_direct\n", "firewalld"),
        ("filter", "-A FORWARD -j DOCKER-USER\n", "dockerd"),
        ("strict", "drop", ""),
    ],
)
def test_owners_by_their_chains(table: str, rules: str, owner: str) -> None:
    assert owner_of(table, rules) == owner


def test_every_cure_names_the_bridge() -> None:
    assert all("br9" in cure_of(owner, "br9") for owner in CURES)
    assert cure_of("", "br9") == ""


def test_a_warning_names_the_owner() -> None:
    assert hint("ufw").startswith("; it is ufw's (") and hint("").startswith(" (husk doctor")
