"""How do containers get a network?

`ipam` decides on subnets and addresses, `host` keeps bridges and the host's settings as they must be, `sandbox` makes
the namespaces that containers run in and their endpoints, and `bridge` is the driver of one network: it ties these
together and keeps a pool of warm sandboxes. `firewall` holds the daemon's nftables table for all networks, `guardian`
puts it back when somebody removes it, and `ports` keeps the host's ports that are published. `dns` reads and writes
messages, `resolver` answers a container's questions for names.
"""
