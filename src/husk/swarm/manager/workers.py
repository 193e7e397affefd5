"""A manager's side of the swarm's workers: who they are, whether they live, and what they are given to do."""

from collections.abc import Callable

import msgspec

from husk.errors import InvalidParameter
from husk.swarm.manager.dispatcher.dispatcher import Dispatcher
from husk.swarm.manager.liveness import Liveness
from husk.swarm.membership.nodes import Nodes
from husk.swarm.model.node import NodeDescription
from husk.swarm.port import protocol

# Of what a node says of itself: labels and plugins together, the length of each word, and the bytes of all: they are a
# part of its record, which has to fit into one message of the store with whatever is to be said of the node.
_MOST, _LONGEST, _LARGEST = 512, 1024, 128 * 1024
# Clients read no numbers of any size.
_NUMBERS = range(1 << 63)
LEFT = "the node has left the swarm"


class Workers:
    def __init__(
        self,
        *,
        own_id: Callable[[], str],
        nodes: Nodes,
        liveness: Callable[[], Liveness],
        dispatcher: Dispatcher,
        changed: Callable[[], None],
        expected: Callable[[], None],
    ) -> None:
        """`liveness` makes one, each time that nodes are to be listened for; `changed` hears that a node is another
        one now, `expected` that there may be workers."""
        self._expected = expected
        self._own_id = own_id
        self._nodes = nodes
        self._make_liveness = liveness
        self._liveness: Liveness | None = None
        self._dispatcher = dispatcher
        self._changed = changed

    def expect(self) -> None:
        """There may be workers: from now on those that are silent are lost."""
        if self._liveness is None:
            self._liveness = self._make_liveness()
            self._liveness.start(self._own_id())
            self._expected()

    async def close(self, *, for_good: bool = False) -> None:
        """`for_good` where this host leaves the swarm."""
        if self._liveness is not None:
            liveness, self._liveness = self._liveness, None
            await liveness.close(for_good=for_good)

    def opened(self) -> None:
        """The swarm can be read again: what could not be given before is."""
        self._dispatcher.wake()

    def beat(self, node: str) -> int:
        self.expect()
        assert self._liveness is not None
        return self._liveness.beat(node)

    def arrive(self, node: str) -> None:
        self.expect()
        assert self._liveness is not None
        self._liveness.arrive(node)

    async def describe(self, node: str, description: NodeDescription) -> None:
        """Save a node's description. Conflict, once it is written down, for one of a release that is too far away."""
        check(description)
        await self._nodes.describe(node, description)
        self._changed()
        told = protocol.ProtocolVersion(description.protocol, description.engine_version)
        protocol.check(node=told, manager=protocol.OWN)

    async def leave(self, node: str) -> None:
        """Its tasks are gone: others can come at once."""
        if self._liveness is not None:
            self._liveness.forget(node)
        if (record := self._nodes.known(node)) is not None and record.is_manager:
            await self._nodes.forget(node)
        else:
            await self._nodes.mark(node, "down", LEFT)
        self._changed()


def check(description: NodeDescription) -> None:
    """A node may say of itself what it likes, but not without end, and nothing that is no amount. Pure."""
    numbers = [description.nano_cpus, description.memory, description.protocol, *description.generic.values()]
    if any(number not in _NUMBERS for number in numbers):
        raise InvalidParameter("a node has no such amounts")
    words = [description.hostname, description.os, description.architecture, description.engine_version]
    words += [word for pair in description.engine_labels.items() for word in pair]
    words += [word for pair in description.plugins for word in pair]
    words += [*description.generic, *description.subnets]
    long = any(len(word) > _LONGEST for word in words)
    if len(words) > _MOST or long or len(msgspec.json.encode(description)) > _LARGEST:
        raise InvalidParameter("this node says too much of itself")
