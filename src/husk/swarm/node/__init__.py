"""A node's half of a swarm: `agent` looks at the containers of its tasks, `runner` does what takes time.

`assignments` are the tasks of this node: a manager has them in its records, a worker is told (`remote_assignments`,
by `dispatch_client`). `worker` is this host as a worker of others' swarm.
"""

from typing import TYPE_CHECKING

from husk.aio.once import late

if TYPE_CHECKING:
    from husk.swarm.node import worker as worker
else:
    # A door: a worker speaks with managers on other hosts, by gRPC.
    __getattr__ = late(__name__, "worker")
