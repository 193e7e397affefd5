"""Things that several hosts share, and ways to reach them.

- `records` the words: records with versions, transactions, news, errors. No I/O
- `etcd` a store of such records that all managers of a swarm share
- `trust` who belongs to a swarm: its CA, join tokens, the certificates of nodes
- `port` the cluster port, on which nodes talk to managers
- `wire`, `endpoints`, `door` connections between hosts

What the engine asks of a store is `engine.services.cluster_store.ClusterStore`; its other implementation, for one host,
is `engine.services.embedded`. Where there is one host, only what costs next to nothing of this package is loaded:
`records`, `endpoints`, `door`, and of `trust` what reads no certificate.
"""
