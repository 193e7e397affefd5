"""The driver of the host's network: bridges, addresses, firewall rules, published ports and names for containers.

The way of an endpoint:

    settings, endpoint        what a network is to be like, and what one endpoint of it is to have
    provision                 makes the bridge (`host`) or the parent interface (`parent`) ready on the host
    allocator, ipam           choose subnets and addresses, and remember whose they are
    sandbox, hardening        make the network namespace and the interface in it; the host believes no packet of theirs
    warm_pool, retiring       sandboxes made ahead of need, and those that are let go
    announcement              tells the network the new MAC address (gratuitous ARP)
    bridge                    `BridgeDriver` ties these together for one network

    overlay, peers            lead a network to other hosts, and tell the kernel which endpoints are there
    wireguard                 what hosts send one another for encrypted networks

Beside it: `firewall` holds the nftables tables of all networks (`rules` writes their text, `integrity` tells whether
the kernel still has it, `guardian` writes it again, `drop_policies`, `legacy_rules` and `firewall_owners` find rules of
others that drop our packets), `balance` shares one address out to many containers, `ports` holds the host's ports that
are published, `relay` serves those that no rule can (`acceptor` lets in as many connections as there is room for),
`dns` reads and writes messages and `resolver` answers a container's questions for names.

The package uses `husk.kernel` and knows nothing of containers and records: `engine/networks` decides and records, and
is the only one who calls it. Whatever blocks says so, and is called from a thread.
"""
