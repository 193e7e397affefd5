"""etcd as a store that the managers of a swarm share: its v3 protocol, spoken with `husk.rpc`.

- `certificates` by which etcd and its clients know each other; the address is read by `husk.config.etcd_address`
- `messages` the messages of etcd's services, as far as they are used
- `translate` records and transactions to messages and back; pure
- `channel` calls to whichever member answers
- `store` all of it as a cluster store, with leases and watches, which go on for long
- `member` etcd itself, run by this host, and `members` those of all hosts, with room made in an etcd that is full
- `visitors` the hosts that are connected to a member now
"""

from typing import TYPE_CHECKING

from husk.aio.once import late

if TYPE_CHECKING:
    from husk.swarm.state.etcd import member as member
    from husk.swarm.state.etcd import members as members
    from husk.swarm.state.etcd import store as store
else:
    # A door: a swarm of one host has its records in SQLite, and needs neither etcd's client nor the gRPC below it.
    __getattr__ = late(__name__, "member", "members", "store")
