"""What several hosts share, and how it is reached.

- `records` the words: records with versions, transactions, news, errors. No I/O
- `etcd` a store of such records that all managers of a swarm share

What the engine asks of a store is `engine.services.cluster_store.ClusterStore`; its other implementation, for one host,
is `engine.services.embedded`. Nothing of this package but `records` is loaded where there is one host.
"""
