"""The cluster store and the records of the swarm in memory.

`transactions` has the words of a store, `cluster_store` what a swarm asks of one: `sqlite` for one host, `etcd` for
several, `no_store` for a worker. `records` keeps all of them in memory and brings changes into the store, `shared`
brings in what other managers write, `leader` elects the one that plans. `member_files` is the directory of this
host's member of etcd.
"""
