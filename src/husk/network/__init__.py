"""How do containers get a network?

`ipam` decides on subnets and addresses, `host` keeps the bridge and the host's settings as they must be, `firewall`
holds the daemon's nftables table, `sandbox` makes and removes the namespaces that containers run in, and `bridge` is
the driver that the engine uses: it ties these together and keeps a pool of warm sandboxes.
"""
