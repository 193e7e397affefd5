"""The owner of a firewall beside ours, and what the owner has to be told. Pure."""

# What has it accept the packets of the bridge `{}`.
CURES = {
    "ufw": "ufw route allow in on {0} && ufw route allow out on {0}",
    "firewalld": "firewall-cmd --permanent --zone=trusted --add-interface={0} && firewall-cmd --reload",
    "dockerd": "iptables -I DOCKER-USER -i {0} -j ACCEPT && iptables -I DOCKER-USER -o {0} -j ACCEPT",
    "iptables-legacy": "iptables-legacy -I FORWARD -i {0} -j ACCEPT && iptables-legacy -I FORWARD -o {0} -j ACCEPT",
    "ip6tables-legacy": "ip6tables-legacy -I FORWARD -i {0} -j ACCEPT && ip6tables-legacy -I FORWARD -o {0} -j ACCEPT",
}
# Chains that only they make, in what `nft` and `iptables` print.
_SIGNS = {"ufw-": "ufw", "ufw6-": "ufw", "DOCKER-USER": "dockerd", "FORWARD_direct": "firewalld"}


def owner_of(table: str, rules: str) -> str:
    """A key of `CURES`; empty where nobody can tell."""
    if table == "firewalld":
        return "firewalld"
    return next((owner for sign, owner in _SIGNS.items() if sign in rules), "")


def cure_of(owner: str, bridge: str) -> str:
    """The command that helps; empty where it is not known."""
    return CURES[owner].format(bridge) if owner in CURES else ""


def hint(owner: str) -> str:
    """The end of a warning."""
    whose = f"; it is {owner}'s" if owner in ("ufw", "firewalld", "dockerd") else ""
    return f"{whose} (husk doctor has the command that helps, docs/networks.md of Husk the reasons)"
