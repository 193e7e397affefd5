"""The parts of a node's half, on the records, this host's place and its networks.

What goes up from here: `noticed`, that a task of this node has another state, or is gone.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from husk.errors import SystemFault
from husk.storage.secrets.task_files import TaskFiles
from husk.storage.secrets.traces import TASK_FILES
from husk.swarm import node
from husk.swarm.membership.parts import MembershipParts
from husk.swarm.model.services import Task
from husk.swarm.model.swarm import Membership
from husk.swarm.network.parts import NetworkParts
from husk.swarm.node.agent import Agent
from husk.swarm.node.assignments import LocalAssignments, PullCredentials
from husk.swarm.node.delivery import Deliveries, SealedValues
from husk.swarm.node.runner import TaskRunner
from husk.swarm.signals import Signal
from husk.swarm.state.parts import StateParts
from husk.swarm.surroundings import SwarmSurroundings

# Makes this host, which is in a swarm already, work for that. The function hears that it is to be a manager.
MakeWorker = Callable[[Membership, Callable[[], None]], Awaitable["node.worker.WorkerRole"]]


class NodeParts(NamedTuple):
    runner: TaskRunner
    agent: Agent
    deliveries: Deliveries
    values: SealedValues
    credentials: PullCredentials
    make_worker: MakeWorker
    noticed: Signal[[Task]]


def build_node(
    around: SwarmSurroundings, state: StateParts, membership: MembershipParts, network: NetworkParts
) -> NodeParts:
    records, cluster, noticed = state.records, membership.cluster, Signal[[Task]]()
    files, values = TaskFiles(around.config.exec_root / TASK_FILES), SealedValues(records, state.sealer)
    credentials, deliveries = PullCredentials(state.sealer), Deliveries(files, values)
    assignments = LocalAssignments(records, cluster, credentials, noticed.emit)
    runner = TaskRunner(
        assignments=assignments, containers=around.containers, images=around.images, deliveries=deliveries
    )

    async def lead() -> bool:
        # Whatever leads somewhere on a worker is as a manager of others tells (`WorkerNetworks`).
        return True if cluster.worker is not None else await network.endpoints.settle()

    agent = Agent(
        assignments=assignments, containers=around.containers, runner=runner, reachable=lead, events=around.events
    )
    records.index.changed.subscribe(lambda task_id: agent.noticed(records.tasks.get(task_id)))
    network.changed.subscribe(agent.wake)
    return NodeParts(
        runner=runner,
        agent=agent,
        deliveries=deliveries,
        values=values,
        credentials=credentials,
        make_worker=_worker_maker(around, membership, files),
        noticed=noticed,
    )


def _worker_maker(around: SwarmSurroundings, membership: MembershipParts, files: TaskFiles) -> MakeWorker:
    cluster, certificates = membership.cluster, membership.certificates

    async def make(place: Membership, promoted: Callable[[], None]) -> "node.worker.WorkerRole":
        kept = certificates.files()
        try:
            if (identity := await asyncio.to_thread(kept.load)) is None:
                raise SystemFault(
                    "this node's certificate is gone: leave the swarm (docker swarm leave), and join again"
                )
            await cluster.look_around()
            return node.worker.WorkerRole(
                place,
                identity,
                kept.save,
                containers=around.containers,
                images=around.images,
                networks=around.networks,
                files=files,
                events=around.events,
                description=cluster.description(),
                note=cluster.enrol,
                promoted=promoted,
            )
        except (OSError, ValueError) as error:
            raise SystemFault(f"this node's certificate cannot be used: {error}") from error

    return make
