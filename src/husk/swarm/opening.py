"""The putting together of the swarm, in phases: records, membership, network, logs, node, manager, role, control.

Objects go the way of imports: each phase is built on those before it, and none is changed afterwards. What a part has
to tell those above it goes through a signal of its own (`husk.swarm.signals`), to which they subscribe.
"""

from contextlib import AsyncExitStack
from typing import NamedTuple

from husk.swarm.backup.backups import Backups
from husk.swarm.control import SwarmControl
from husk.swarm.logs.parts import build_logs
from husk.swarm.manager.parts import ManagerParts, build_manager
from husk.swarm.manager.role import ManagerRole
from husk.swarm.membership.moving import drop
from husk.swarm.membership.parts import build_membership
from husk.swarm.network.parts import build_network
from husk.swarm.node.parts import NodeParts, build_node
from husk.swarm.role import NodeRole
from husk.swarm.state.parts import StateParts, build_state, store_of
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.surroundings import SwarmSurroundings


class _Swarm(NamedTuple):
    state: StateParts
    node: NodeParts
    manager: ManagerParts
    control: SwarmControl

    def start(self) -> None:
        """Let the loops go, with the next turn of the event loop."""
        self.manager.reconciler.start()
        self.node.agent.start()


async def open_swarm(stack: AsyncExitStack, around: SwarmSurroundings) -> SwarmControl:
    """Go on keeping what was declared, from where the last daemon was."""
    swarm = _build(stack, around)
    control, shared = swarm.control, swarm.state.shared

    async def begin() -> None:
        if store_of(around.state) is not None:
            # A daemon that died while it moved the records left its own.
            await drop(SqliteStore(around.state))
        if control.cluster.worker is None:
            await swarm.node.deliveries.sweep(control.alive_tasks())
        swarm.start()
        await control.open()

    await control.certificates.go_on()
    await control.node_role.manager_role.etcd_membership.open()
    if shared is None:
        await begin()
    else:
        # Nothing is done for tasks before their records are known.
        await shared.open(begin)
    return control


def build_swarm(stack: AsyncExitStack, around: SwarmSurroundings) -> SwarmControl:
    """Build the swarm where nothing is left of one. Blocks for as long as it takes to read all records."""
    swarm = _build(stack, around)
    swarm.start()
    return swarm.control


def _build(stack: AsyncExitStack, around: SwarmSurroundings) -> _Swarm:
    state = build_state(around, store_of(around.state) or around.config.cluster_store)
    membership = build_membership(around, state)
    network = build_network(around, state, membership)
    logs = build_logs(around, state, membership)
    node = build_node(around, state, membership, network)
    manager = build_manager(around, state, membership, network, logs, node)
    manager_role = ManagerRole(state, membership, network, node, manager)
    node_role = NodeRole(state, membership, node, manager, manager_role)
    backups = Backups(around, state, membership, manager, node_role)
    control = SwarmControl(around, state, membership, network, logs, node, manager, node_role, backups)
    # From the last to the first: until all others are closed states of tasks are written.
    closing = (control, manager.workers, manager.listener, node.runner, node.agent, manager.reconciler)
    for part in closing:
        stack.push_async_callback(part.close)
    return _Swarm(state, node, manager, control)
