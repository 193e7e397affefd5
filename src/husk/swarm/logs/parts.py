"""The parts that read logs of tasks, on the records and this host's place."""

from typing import NamedTuple

from husk.swarm.logs.broker import LogBroker, open_broker
from husk.swarm.logs.task_logs import TaskLogs
from husk.swarm.membership.parts import MembershipParts
from husk.swarm.model.services import Task, is_given
from husk.swarm.state.parts import StateParts
from husk.swarm.surroundings import SwarmSurroundings


class LogParts(NamedTuple):
    broker: LogBroker
    tasks: TaskLogs


def build_logs(around: SwarmSurroundings, state: StateParts, membership: MembershipParts) -> LogParts:
    records, cluster, containers = state.records, membership.cluster, around.containers

    def own(task_id: str) -> Task | None:
        task = records.tasks.get(task_id)
        return task if is_given(task, cluster.node_id) else None

    broker = open_broker(records.nodes, cluster, membership.certificates, containers, own)
    return LogParts(broker, TaskLogs(containers, cluster, records, broker))
