"""etcd as a store that the managers of a swarm share: its v3 protocol, spoken with `husk.rpc`.

- `certificates` by which etcd and its clients know each other; the address is read by `husk.config.etcd_address`
- `messages` the messages of etcd's services, as far as they are used
- `translate` records and transactions to messages and back; pure
- `channel` calls to whichever member answers
- `watch` and `lease` what goes on for long
- `store` all of it as a cluster store
- `member` etcd itself, run by this host, and `members` those of all hosts
- `relief` room in an etcd that is full, and `visitors` the hosts that are connected to a member now
"""

from typing import TYPE_CHECKING

from husk.aio.once import late

if TYPE_CHECKING:
    from husk.swarm.state.etcd import member as member
    from husk.swarm.state.etcd import members as members
    from husk.swarm.state.etcd import relief as relief
    from husk.swarm.state.etcd import store as store
else:
    # A door: a swarm of one host has its records in SQLite, and needs neither etcd's client nor the gRPC below it.
    __getattr__ = late(__name__, "member", "members", "relief", "store")
