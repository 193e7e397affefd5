"""What several hosts share, and how it is reached.

- `records` the words: records with versions, transactions, news, errors. No I/O
- `etcd` a store of such records that all managers of a swarm share
- `trust` who belongs to a swarm: its CA, join tokens, the certificates of nodes
- `port` the cluster port, on which nodes talk to managers
- `wire`, `endpoints` connections between hosts

What the engine asks of a store is `engine.services.cluster_store.ClusterStore`; its other implementation, for one host,
is `engine.services.embedded`. Nothing of this package but `records` is loaded where there is one host.
"""
