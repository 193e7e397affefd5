"""etcd as a store that the managers of a swarm share: its v3 protocol, spoken with `husk.rpc`.

- `address` where etcd is, and the certificates to be shown there
- `messages` the messages of etcd's services, as far as they are used
- `translate` records and transactions to messages and back; pure
- `channel` calls to whichever member answers
- `watch` and `lease` what goes on for long
- `store` all of it as a cluster store
- `member` etcd itself, run by this host, and `members` those of all hosts
"""
