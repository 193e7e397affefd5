"""The parts of services, built in the order in which they need each other.

Where nothing is left of a swarm (`husk.composition`), they are built when somebody first asks for them.
"""

import asyncio
import functools
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from husk.engine.opening import OpenParts
from husk.errors import Conflict, HuskError, SystemFault
from husk.storage.secrets.member_key import MemberKey
from husk.storage.secrets.sealing import Sealer
from husk.storage.secrets.task_files import TaskFiles
from husk.storage.secrets.traces import KEY, TASK_FILES
from husk.swarm.control import SwarmControl
from husk.swarm.logs.task_logs import TaskLogs
from husk.swarm.manager.listener import ClusterListener
from husk.swarm.manager.objects import Objects
from husk.swarm.manager.reconciler import Reconciler
from husk.swarm.manager.role import ManagerRole
from husk.swarm.manager.workers import Workers
from husk.swarm.membership.certificates import Certificates
from husk.swarm.membership.cluster import Cluster, store_of
from husk.swarm.membership.etcd_membership import KEY as MEMBER_KEY
from husk.swarm.membership.etcd_membership import EtcdMembership
from husk.swarm.membership.moving import drop
from husk.swarm.membership.nodes import Nodes
from husk.swarm.model.node import Machine
from husk.swarm.model.refusals import LOCKED
from husk.swarm.model.swarm import Membership
from husk.swarm.network.endpoints import Endpoints
from husk.swarm.network.networks import SwarmNetworks
from husk.swarm.network.sharing import NetworkSharing
from husk.swarm.node.agent import Agent
from husk.swarm.node.assignments import LocalAssignments
from husk.swarm.node.credentials import PullCredentials
from husk.swarm.node.delivery import Deliveries, SealedValues
from husk.swarm.node.runner import Runner
from husk.swarm.role import NodeRole
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.shared import Shared
from husk.swarm.state.sqlite import SqliteStore

if TYPE_CHECKING:
    from husk.swarm.backup.backups import Backups
    from husk.swarm.logs.broker import LogBroker
    from husk.swarm.manager.ca_server import CAServer
    from husk.swarm.manager.dispatcher.dispatcher import Dispatcher
    from husk.swarm.manager.liveness import Liveness
    from husk.swarm.network.server import NetworkServer
    from husk.swarm.node.worker import WorkerRole
    from husk.swarm.port.server import ClusterPort

# In the data root.
NODE = "swarm.node"
MEMBER = "swarm.etcd"
# The kind of networks that this host shares with others of its swarm.
OVERLAY = "overlay"


async def open_swarm(stack: AsyncExitStack, core: OpenParts) -> SwarmControl:
    """Go on keeping what was declared, from where the last daemon was."""
    parts = _build(stack, core)

    async def begin() -> None:
        if store_of(core.state) is not None:
            # A daemon that died while it moved the records left its own.
            await drop(SqliteStore(core.state))
        if parts.services.cluster.worker is None:
            await parts.deliveries.sweep(parts.services.alive_tasks())
        parts.start()
        await parts.services.open()

    await parts.services.certificates.go_on()
    await parts.services.node_role.manager_role.etcd_membership.open()
    if parts.shared is None:
        await begin()
    else:
        # Nothing is done for tasks before their records are known.
        await parts.shared.open(begin)
    return parts.services


def build_swarm(stack: AsyncExitStack, core: OpenParts) -> SwarmControl:
    """Build the services where nothing is left of a swarm. Blocks for as long as it takes to read all records."""
    parts = _build(stack, core)
    parts.start()
    return parts.services


class _Parts(NamedTuple):
    """`start` lets their loops go, with the next turn of the event loop."""

    services: SwarmControl
    deliveries: Deliveries
    shared: Shared | None
    start: Callable[[], None]


def _build(stack: AsyncExitStack, core: OpenParts) -> _Parts:
    config, state, events = core.config, core.state, core.events
    containers, images, networks = core.containers, core.images, core.networks
    info = core.system.info()
    machine = Machine(info.hostname, info.machine, info.cpus, info.memory, info.version)
    sealer = Sealer(config.data_root / KEY)
    member_key = MemberKey(config.data_root / MEMBER / MEMBER_KEY, config.exec_root / MEMBER, sealer)
    shared = None
    moved_to = store_of(state)
    where = moved_to or config.cluster_store
    if where is None:
        store = SwarmRecords.load(SqliteStore(state))
    else:
        from husk.swarm.state.open_store import open_store

        if moved_to is None and state.has("swarm"):
            raise Conflict(
                "This host is a swarm of its own, whose records are in its data root: start the daemon without "
                "--cluster-store, leave that swarm (docker swarm leave --force), and start it with that again"
            )
        store = SwarmRecords(open_store(where, _why_shut(member_key, sealer) if moved_to is not None else ""))
        shared = Shared(store, store.store, lambda *service_ids: node_role.manager_role.woken(*service_ids))

    def ca_server() -> "CAServer":
        from husk.swarm.manager.ca_server import CAServer

        return CAServer(store, cluster, certificates, workers.beat, lambda: node_role.manager_role.several())

    def dispatcher() -> "Dispatcher":
        from husk.swarm.manager.dispatcher.dispatcher import Dispatcher

        return Dispatcher(
            store=store,
            values=values,
            credentials=credentials,
            locked=lambda: cluster.locked,
            changed=lambda task: reconciler.noticed(task),
            networks=network_server().share,
            generation=network_server().generation,
        )

    @functools.cache
    def network_server() -> "NetworkServer":
        from husk.swarm.network.local_node import LocalManager
        from husk.swarm.network.server import NetworkServer

        return NetworkServer(store, LocalManager(cluster), lambda: endpoints.shared, lambda: agent.wake())

    async def lead() -> bool:
        if cluster.worker is not None:
            # Whatever leads somewhere here is as a manager of others tells (`WorkerNetworks`).
            return True
        led = await endpoints.settle()
        workers.look()
        return led

    def liveness() -> "Liveness":
        from husk.swarm.manager.liveness import Liveness, NodeMarker
        from husk.swarm.model.heartbeats import period_of

        def period() -> int:
            return period_of(store.swarm.spec.dispatcher.heartbeat_period if store.swarm is not None else 0)

        marking = NodeMarker(
            store.store,
            store.nodes.values,
            nodes,
            leading=lambda: store.leadership.leading,
            marked=lambda: reconciler.wake(),
            period=period,
        )
        return Liveness(store.store, marking, period)

    def broker() -> "LogBroker":
        from husk.swarm.logs.broker import open_broker

        return open_broker(store.nodes, cluster, certificates, containers, assignments.task)

    @functools.cache
    def backups() -> "Backups":
        from husk.swarm.backup.backups import Backups

        return Backups(
            store=store,
            cluster=cluster,
            sealer=sealer,
            certificates=certificates,
            networks=networks,
            listener=listener,
            node_role=node_role,
        )

    async def worker(membership: Membership) -> "WorkerRole":
        from husk.swarm.node.worker import WorkerRole

        kept = certificates.files()
        try:
            if (identity := await asyncio.to_thread(kept.load)) is None:
                raise SystemFault(
                    "this node's certificate is gone: leave the swarm (docker swarm leave), and join again"
                )
            await cluster.look_around()
            return WorkerRole(
                membership,
                identity,
                kept.save,
                containers=containers,
                images=images,
                networks=networks,
                files=files,
                events=events,
                description=cluster.description(),
                note=cluster.enrol,
                promoted=lambda: node_role.promoted(),
            )
        except (OSError, ValueError) as error:
            raise SystemFault(f"this node's certificate cannot be used: {error}") from error

    def register(port: "ClusterPort") -> None:
        from husk.swarm.port.enter import EnterHandlers

        workers.register(port)
        EnterHandlers(etcd_membership).register(port)

    labels = dict(label.partition("=")[::2] for label in config.labels)
    cluster = Cluster(state, store, sealer, labels, machine, networks.subnets)
    files, values = TaskFiles(config.exec_root / TASK_FILES), SealedValues(store, sealer)
    deliveries = Deliveries(files, values)
    credentials = PullCredentials(sealer)
    assignments = LocalAssignments(store, cluster, credentials, lambda task: reconciler.noticed(task))
    runner = Runner(
        assignments=assignments,
        containers=containers,
        images=images,
        deliveries=deliveries,
        wake=lambda task: agent.wake(task.id),
    )
    endpoints = Endpoints(
        store=store, networks=networks, node_id=lambda: cluster.node_id, find_container=containers.find
    )
    agent = Agent(assignments=assignments, containers=containers, runner=runner, reachable=lead, events=events)
    store.index.observe(lambda task_id: agent.noticed(store.tasks.get(task_id)))
    reconciler = Reconciler(
        store=store,
        cluster=cluster,
        nodes=lambda: {node.id: node.facts for node in cluster.nodes},
        events=events,
        looked=agent.wake,
    )
    # Last: until then states of tasks are written.
    stack.push_async_callback(lambda: services.close())
    certificates = Certificates(store, cluster, sealer, config.data_root / NODE)
    etcd_membership = EtcdMembership(
        store, cluster, sealer, config.data_root / MEMBER, key=member_key, ports=config.swarm_etcd_ports
    )
    cluster.opened, cluster.locking = etcd_membership.unlocked, etcd_membership.follow_lock
    cluster.member_trouble = lambda: etcd_membership.trouble
    nodes = Nodes(store, cluster)
    nodes.spare = etcd_membership.spare
    workers = Workers(
        own_id=lambda: cluster.node_id,
        nodes=nodes,
        liveness=liveness,
        dispatcher=dispatcher,
        logs=broker,
        changed=lambda: reconciler.wake(),
        addresses=network_server,
        expected=lambda: sharing.begin(),
        away=lambda: store.away(),
    )
    stack.push_async_callback(workers.close)
    listener = ClusterListener(cluster, certificates, ca_server, register)
    stack.push_async_callback(listener.close)
    stack.push_async_callback(runner.close)
    stack.push_async_callback(agent.close)
    stack.push_async_callback(reconciler.close)
    swarm_networks = SwarmNetworks(
        store=store,
        cluster=cluster,
        networks=networks,
        shared=lambda: endpoints.shared,
        left=lambda: sharing.end(),
    )
    sharing = NetworkSharing(store, cluster, networks, endpoints, agent.wake, events)
    if shared is not None or state.has(OVERLAY):
        sharing.begin()
    manager_role = ManagerRole(
        store=store,
        cluster=cluster,
        certificates=certificates,
        sealer=sealer,
        etcd_membership=etcd_membership,
        listener=listener,
        workers=workers,
        shared=shared,
        sharing=sharing,
        embedded=lambda: SqliteStore(state),
        woken=lambda *service_ids: reconciler.wake(*service_ids),
        demoted=lambda: node_role.demoted(),
    )
    node_role = NodeRole(
        manager_role=manager_role,
        store=store,
        cluster=cluster,
        certificates=certificates,
        listener=listener,
        workers=workers,
        worker=worker,
        remove_tasks=runner.remove_all,
    )
    services = SwarmControl(
        store=store,
        cluster=cluster,
        reconciler=reconciler,
        agent=agent,
        runner=runner,
        endpoints=endpoints,
        networks=swarm_networks,
        nodes=nodes,
        workers=workers,
        node_role=node_role,
        backups=backups,
        certificates=certificates,
        listener=listener,
        secrets=Objects("secret", store=store, cluster=cluster, sealer=sealer, events=events),
        configs=Objects("config", store=store, cluster=cluster, sealer=sealer, events=events),
        credentials=credentials,
        containers=containers,
        logs=TaskLogs(containers, cluster, store, lambda: workers.logs),
        events=events,
    )

    def start() -> None:
        reconciler.start()
        agent.start()

    return _Parts(services, deliveries, shared, start)


def _why_shut(key: MemberKey, sealer: Sealer) -> str:
    """Return the reason why the swarm's own etcd cannot be asked before the swarm is unlocked; empty where it can."""
    sealer.look()
    try:
        return "" if key.open() else LOCKED
    except (HuskError, OSError) as error:
        return f"the key of this manager's member of etcd cannot be used: {error}"
