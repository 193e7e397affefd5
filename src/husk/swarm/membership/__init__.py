"""Membership: the swarm, its nodes, and how a host comes in.

`cluster` is the swarm as this host knows it, `founding` its first records, `joining` the way into another's.
`certificates` are those of nodes, `autolock` guards the keys. `etcd_membership` runs this manager's member of the
swarm's own etcd, and `moving` brings records from one store to another.
"""
