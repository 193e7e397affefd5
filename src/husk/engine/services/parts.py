"""The parts of services, built in the order in which they need each other.

Where nothing is left of a swarm (`wanted`), they are built when somebody first asks for them.
"""

from contextlib import AsyncExitStack

from husk.config import Config
from husk.engine.containers.service import Containers
from husk.engine.images.service import Images
from husk.engine.model.events import Events
from husk.engine.networks.service import Networks
from husk.engine.services.agent import Agent
from husk.engine.services.assignments import LocalAssignments
from husk.engine.services.cluster import Cluster
from husk.engine.services.credentials import PullCredentials
from husk.engine.services.delivery import Deliveries, SealedValues
from husk.engine.services.embedded import EmbeddedStore
from husk.engine.services.endpoints import Endpoints
from husk.engine.services.machine import Machine
from husk.engine.services.networks import SwarmNetworks
from husk.engine.services.nodes import Nodes
from husk.engine.services.objects import Objects
from husk.engine.services.reconciler import Reconciler
from husk.engine.services.records import SwarmRecords
from husk.engine.services.runner import Runner
from husk.engine.services.service import Services
from husk.engine.services.wanted import KEY, TASK_FILES
from husk.storage.secrets.sealing import Sealer
from husk.storage.secrets.task_files import TaskFiles
from husk.storage.state.store import StateStore


async def open_services(
    stack: AsyncExitStack,
    config: Config,
    state: StateStore,
    machine: Machine,
    containers: Containers,
    images: Images,
    networks: Networks,
    events: Events,
) -> Services:
    """Go on keeping what was declared, from where the last daemon was."""
    services, deliveries = build_services(stack, config, state, machine, containers, images, networks, events)
    await deliveries.sweep(services.alive_tasks())
    await services.open()
    return services


def build_services(
    stack: AsyncExitStack,
    config: Config,
    state: StateStore,
    machine: Machine,
    containers: Containers,
    images: Images,
    networks: Networks,
    events: Events,
) -> tuple[Services, Deliveries]:
    """Blocks for as long as it takes to read all records. Its loops go with the first turn of the event loop."""
    store = SwarmRecords.load(EmbeddedStore(state))
    labels = dict(label.partition("=")[::2] for label in config.labels)
    sealer = Sealer(config.data_root / KEY)
    cluster = Cluster(state, store, sealer, labels, machine)
    deliveries = Deliveries(TaskFiles(config.exec_root / TASK_FILES), SealedValues(store, sealer))
    credentials = PullCredentials(sealer)
    assignments = LocalAssignments(store, cluster, credentials, lambda task: reconciler.noticed(task))
    runner = Runner(
        assignments=assignments,
        containers=containers,
        images=images,
        deliveries=deliveries,
        wake=lambda task: agent.wake(task.id),
    )
    endpoints = Endpoints(store=store, networks=networks, find_container=containers.find)
    agent = Agent(
        assignments=assignments, containers=containers, runner=runner, reachable=endpoints.settle, events=events
    )
    store.index.observe(agent.wake)
    reconciler = Reconciler(
        store=store,
        cluster=cluster,
        nodes=lambda: {node.id: node.facts for node in cluster.nodes},
        events=events,
        looked=agent.wake,
    )
    stack.push_async_callback(runner.close)
    stack.push_async_callback(agent.close)
    stack.push_async_callback(reconciler.close)
    swarm_networks = SwarmNetworks(store=store, cluster=cluster, networks=networks)
    services = Services(
        store=store,
        cluster=cluster,
        reconciler=reconciler,
        agent=agent,
        runner=runner,
        endpoints=endpoints,
        networks=swarm_networks,
        nodes=Nodes(store, cluster),
        secrets=Objects("secret", store=store, cluster=cluster, sealer=sealer, events=events),
        configs=Objects("config", store=store, cluster=cluster, sealer=sealer, events=events),
        credentials=credentials,
        containers=containers,
        events=events,
    )
    reconciler.start()
    agent.start()
    return services, deliveries
