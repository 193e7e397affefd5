"""How do containers get a network?

`ipam` decides on subnets and addresses, `host` keeps bridges and the host's settings as they must be, `ground` is what
a network needs on the host before it has endpoints, `sandbox` makes the namespaces that containers run in and their
endpoints, and `bridge` is the driver of one network: it ties these together and keeps a pool of warm sandboxes.
`firewall` holds the daemon's nftables tables for all networks, `guardian` puts them back when somebody removes them,
`balance` shares one address out to many containers, `ports` keeps the host's ports that are published, and `relay`
serves those that no rule can. `dns` reads and writes messages, `resolver` answers a container's questions for names.
"""
