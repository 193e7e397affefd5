"""The life of a swarm: what happens to it by chance, and what must hold whatever happens.

At each moment:
- In a slot at most one task is alive and wanted; two where an update starts the new one first.
- No container of a wanted task is ended by anybody but itself, its host's power, or its service's removal.
- What a client was told to be written is in the store until a client removes it.
- Nobody has an address, or a MAC, that somebody else has. One node at least is to be a manager, and nobody is
  demoted whom the other managers need.
- A manager has each record in memory as it was written, from the moment on in which it was: never before.
- Two containers of a slot run side by side only while a host of theirs, or the store, is in trouble, and a while after.

And when all faults have ended, in a few minutes: each service has the tasks that are declared, on nodes that may have
them, each with its container, and nothing else runs. A service that cannot be written, or whose tasks fail, stops no
other.
"""

import asyncio
import hashlib
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, cast

import msgspec

from husk.aio.tasks import Tasks
from husk.engine.model.container import TASK_LABEL, Container
from husk.engine.model.network import Network as NetworkRecord
from husk.engine.networks.sharing import Occupant, Place
from husk.errors import HuskError
from husk.network.endpoint import EndpointOptions
from husk.swarm.model.node import Node, NodeDescription, NodeStatus, manager_at
from husk.swarm.model.services import (
    ContainerSpec,
    Empty,
    Mode,
    Replicated,
    ReplicatedJob,
    Service,
    ServiceSpec,
    Task,
    TaskRestartPolicy,
    TaskSpec,
    UpdateConfig,
    copied,
)
from husk.swarm.model.settings import NodeSpec, SwarmSpec
from husk.swarm.model.swarm import Swarm
from husk.swarm.spec.containers import SERVICE_LABEL
from husk.swarm.spec.declared import changed_to
from husk.swarm.state.etcd.translate import name_of
from husk.swarm.state.transactions import with_version
from tests.simulation.daemons import Manager, Worker
from tests.simulation.etcd import Etcd
from tests.simulation.hosts import SECOND, Host, Network

MANAGERS = 3
NETWORK = "net"
# Those that containers choose.
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
# In simulated seconds: how long faults go on; how long a swarm may take to settle then, and must stay as it is; how
# long two containers of a slot may run side by side when nothing is in trouble.
TROUBLE, SETTLE, STAY, BESIDE = 90.0, 240.0, 20.0, 45.0
# How long ago a manager that is counted on may have been there: who demotes another has asked it shortly before.
ASKED = 30.0
# In how many lives tasks fail as fast as they can.
HASTY = 1 / 8
# What etcd takes in a request.
LARGEST = 1_572_864
KINDS: dict[str, type[Task] | type[Service] | type[Node] | type[Swarm]] = {
    "task": Task,
    "service": Service,
    "node": Node,
    "swarm": Swarm,
}


class Violation(AssertionError):
    """Something does not hold that must."""


class Life:
    def __init__(self, seed: int, tell: Callable[[str], None] = lambda told: None) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self._tell = tell
        self.told: list[str] = []
        self.calm = False
        self._tasks = Tasks()

    async def live(self) -> None:
        self.network = Network(self.chance)
        workers = self.chance.randrange(4)
        names = [f"m{number}" for number in range(1, MANAGERS + 1)] + [f"w{number}" for number in range(1, workers + 1)]
        self.hosts = {name: Host(name, self.network, self.chance) for name in names}
        members = [host for name, host in self.hosts.items() if name.startswith("m")]
        self.etcd = Etcd(members, self.network, self.chance)
        # Hosts that are managers, by what is on their own disks.
        self.manages = {host.name for host in members}
        self.daemons: dict[str, Manager | Worker] = {}
        # As the store has them.
        self.services: dict[str, Service] = {}
        self.tasks: dict[str, Task] = {}
        self.nodes: dict[str, Node] = {}
        # Services, also such as have been removed, whose updates start the new task of a slot first.
        self._overlapping: set[str] = set()
        self._slots: defaultdict[object, set[str]] = defaultdict(set)
        # By address, and by MAC: who has it. Of services: which a client was told to be there, and which it may have
        # removed.
        self.held: dict[str, str] = {}
        self.acknowledged: set[str] = set()
        self.removed: set[str] = set()
        self._trouble_at: dict[str, float] = dict.fromkeys(names, 0.0)
        self._beside: dict[tuple[str, object], float] = {}
        self._violation: Violation | None = None
        self._found_at = 0
        # How each record was written, by its versions; and when each member of etcd was last there.
        self._forms: dict[tuple[str, str, int], bytes] = {}
        self._there_at: dict[str, float] = {}
        self._write_first_records()
        self.etcd.observers.append(self._written)
        hasty = self.chance.random() < HASTY
        for host in self.hosts.values():
            host.containers.ending = self._ending
            host.containers.hasty = hasty
            self._start(host)
        background = [self.etcd.pass_time(), self._watch(), self._clients(), self._clients()]
        for work in background:
            self._tasks.spawn(work, "life")
        faults = [self._tasks.spawn(self._faults(), "faults", awaited=True) for _ in range(2)]
        try:
            await self._until(TROUBLE)
            self.calm = True
            for fault in faults:
                await fault
            self.say("all faults have ended")
            for host in self.hosts.values():
                host.containers.trouble = False
            await self._settle()
        finally:
            await self._tasks.cancel_all()
            for daemon in self.daemons.values():
                daemon.kill()

    # --- the beginning

    def _write_first_records(self) -> None:
        swarm = Swarm(
            id="swarm", version=0, created_at="", updated_at="", spec=SwarmSpec(), worker_token="", manager_token=""
        )
        self._write("swarm", "default", swarm)
        network = NetworkRecord(
            id=NETWORK, name=NETWORK, created="", driver="overlay", scope="swarm", subnet="10.0.9.0/28",
            gateway="10.0.9.1",
        )  # fmt: skip
        self._write("overlay", NETWORK, network)
        for name in self.hosts:
            manages = name.startswith("m")
            node = Node(
                id=name,
                version=0,
                created_at="",
                updated_at="",
                spec=NodeSpec(role="manager" if manages else "worker"),
                description=NodeDescription(hostname=name),
                status=NodeStatus(state="ready", addr=name),
                manager=manager_at(name) if manages else None,
            )
            self._write("node", name, node)

    def _write(self, kind: str, key: str, record: msgspec.Struct) -> None:
        from husk.swarm.state.etcd.messages import TXN
        from husk.swarm.state.etcd.translate import transaction
        from husk.swarm.state.transactions import Put

        self.etcd.answer(TXN, transaction([Put(kind, key, msgspec.json.encode(record))]).encode())
        if kind == "node":
            assert isinstance(record, Node)
            self.nodes[key] = record
        if isinstance(record, Node | Swarm):
            self._forms[kind, key, self.etcd.revision] = _form(record)
        self._found_at = self.etcd.revision

    def _start(self, host: Host) -> None:
        daemon: Manager | Worker
        if host.name in self.manages:
            members = [self.hosts[name] for name in sorted(self.etcd.voters)]
            daemon = Manager(host, self.chance, self.etcd, members)
            self.daemons[host.name] = daemon
            daemon.start()
            daemon.process.begin(self._use_addresses(daemon))
            daemon.stepped_down = lambda: self._change_role(host)
        else:
            daemon = Worker(host, self.chance, self._managers)
            self.daemons[host.name] = daemon
            daemon.start()
            daemon.process.begin(self._rise(host))

    async def _rise(self, host: Host) -> None:
        """Become a manager, once the swarm wants that and most members of its etcd can say so."""
        while True:
            await asyncio.sleep(self.chance.uniform(1, 3))
            there = sorted(self.etcd.majority())
            if self.nodes[host.name].is_manager and any(
                self.etcd.serves(member) and self.network.linked(host.name, member) for member in there
            ):
                self.etcd.members[host.name] = host
                self.etcd.voters.add(host.name)
                self._change_role(host)

    def _change_role(self, host: Host) -> None:
        """Go on as a manager or as a worker, with the containers as they are."""
        self._kill_daemon(host)
        self.manages ^= {host.name}
        self.say(f"{host.name} is a {'manager' if host.name in self.manages else 'worker'} now")
        self._start(host)

    def _managers(self) -> list[Manager]:
        return [daemon for daemon in self.daemons.values() if isinstance(daemon, Manager)]

    # --- what happens

    async def _faults(self) -> None:
        kinds = [
            self._fall,
            self._fall,
            self._kill,
            self._kill,
            self._cut,
            self._cut,
            self._part,
            self._slow,
            self._sleep,
            self._step,
            self._forget,
        ]
        while not self.calm:
            await self._until(self.chance.expovariate(1 / 6))
            if not self.calm:
                await self.chance.choice(kinds)(self.chance.choice(list(self.hosts.values())))

    async def _until(self, seconds: float) -> None:
        """So long, or until something does not hold."""
        end = self.now + seconds
        while self.now < end:
            if self._violation is not None:
                raise self._violation
            await asyncio.sleep(min(0.5, end - self.now))

    async def _fall(self, host: Host) -> None:
        if not host.up:
            return
        async with self._in_trouble(host, "has no power", 60):
            self._kill_daemon(host)
            host.fall()
            await self._until(self.chance.uniform(1, 60))
            host.rise()
            self._start(host)

    async def _kill(self, host: Host) -> None:
        if not host.up or self.daemons[host.name].process.dead:
            return
        async with self._in_trouble(host, "has its daemon killed", 30):
            self._kill_daemon(host)
            await self._until(self.chance.choice([0.1, 1, self.chance.uniform(1, 40)]))
            if host.up and self.daemons[host.name].process.dead:
                self._start(host)

    def _kill_daemon(self, host: Host) -> None:
        self.daemons[host.name].kill()
        self.held = {address: by for address, by in self.held.items() if by != host.name}

    async def _cut(self, host: Host) -> None:
        async with self._in_trouble(host, "is cut off", 60):
            self.network.cut(host.name)
            await self._until(self.chance.choice([1.0, 5.0, self.chance.uniform(1, 60)]))
            self.network.cut(host.name, off=False)

    async def _part(self, host: Host) -> None:
        """It and another one do not reach each other, though both reach all others."""
        other = self.chance.choice(list(self.hosts.values()))
        if other is host or {host.name, other.name} <= self.etcd.members.keys():
            return
        async with self._in_trouble(host, f"and {other.name} do not reach each other", 60):
            self.network.part(host.name, other.name)
            await self._until(self.chance.choice([5.0, self.chance.uniform(1, 60)]))
            self.network.part(host.name, other.name, off=False)

    async def _slow(self, host: Host) -> None:
        async with self._in_trouble(host, "has a slow disk", 30):
            host.slow = self.chance.choice([5.0, 30.0, 200.0])
            await self._until(self.chance.uniform(1, 30))
            host.slow = 1.0

    async def _sleep(self, host: Host) -> None:
        """Its daemon is stopped for a while, be it in the moment before it writes something that it has decided."""
        process, seconds = self.daemons[host.name].process, self.chance.uniform(1, 20)
        async with self._in_trouble(host, "has its daemon stopped", 30):
            if self.chance.random() < 0.7:
                process.doze(seconds)
                await self._until(5)
            if process.waiting is None:
                process.sleep(seconds)
            await self._until(seconds)

    async def _step(self, host: Host) -> None:
        seconds = self.chance.choice([-7200, -3600, -60, 60, 3600, 86400 * 40])
        self.say(f"{host.name}: its clock is set by {seconds} s")
        host.wrong += seconds * SECOND

    async def _forget(self, host: Host) -> None:
        self.say("etcd is compacted")
        self.etcd.forget()

    @asynccontextmanager
    async def _in_trouble(self, host: Host, what: str, most: float) -> AsyncIterator[None]:
        self.say(f"{host.name} {what}")
        self._trouble_at[host.name] = self.now + most + 60
        yield
        self._trouble_at[host.name] = max(self.now, 0.0)
        self.say(f"{host.name} {what} no longer")

    # --- clients

    async def _clients(self) -> None:
        doing = [self._create] * 3 + [self._scale, self._update, self._update, self._drain, self._remove, self._demote]
        while not self.calm:
            await self._until(self.chance.expovariate(1 / 4))
            ready = [one for one in self._managers() if one.ready and not one.process.dead]
            if not ready or self.calm:
                continue
            what = self.chance.choice(doing)
            # Now and then each manager has somebody who wants such a thing, in the same moment.
            asked = [self.chance.choice(ready)]
            if self.chance.random() < 0.1:
                asked, what = ready, self.chance.choice([what, self._demote])
            await asyncio.gather(*(self._ask(manager, what) for manager in asked))

    async def _ask(self, manager: Manager, what: Callable[[Manager], Coroutine[Any, Any, None]]) -> None:
        answering = manager.process.begin(what(manager))
        await asyncio.wait([answering], timeout=20)
        if answering.done() and not answering.cancelled() and (error := answering.exception()) is not None:
            if not isinstance(error, HuskError):
                raise error
            self.say(f"client at {manager.host.name}: {what.__name__} is refused: {error.message}")

    async def _create(self, manager: Manager) -> None:
        if len(manager.store.services) > 7:
            return
        chance = self.chance
        image = chance.choice(["steady", "steady", "flaky", "crash", "bad", "job", "large"])
        mode = Mode(replicated=Replicated(replicas=chance.randrange(5)))
        if image == "job":
            mode = Mode(replicated_job=ReplicatedJob(max_concurrent=2, total_completions=3))
        elif chance.random() < 0.3:
            mode = Mode(global_=Empty())
        container = ContainerSpec(image="steady" if image == "large" else image)
        if image == "large":
            # One that etcd still takes, but not with what a task adds, or a little later not with what becomes of it.
            container = ContainerSpec(image="steady", env=["X=" + "x" * (LARGEST - chance.randrange(800, 2600))])
        spec = ServiceSpec(
            name=f"s{chance.getrandbits(32):08x}-{image}",
            mode=mode,
            task_template=TaskSpec(
                container_spec=container,
                restart_policy=TaskRestartPolicy(
                    delay=chance.choice([0, SECOND, 5 * SECOND]),
                    condition="on-failure" if image == "job" else "any",
                ),
            ),
            update_config=UpdateConfig(
                order=chance.choice(["stop-first", "start-first"]),
                parallelism=chance.randrange(3),
                monitor=SECOND,
                failure_action=chance.choice(["continue", "pause", "rollback"]),
            ),
        )
        stamp = manager.clock.stamp()
        service = Service(id=manager.id(), version=0, created_at=stamp, updated_at=stamp, spec=spec)
        await manager.store.retried(lambda: manager.store.save(service, alone="service"))
        self.acknowledged.add(service.id)
        self.say(f"client: service {spec.name} is declared")
        manager.reconciler.wake(service.id)

    def _some(self, manager: Manager) -> Service | None:
        services = sorted(manager.store.services.values(), key=lambda one: one.id)
        return self.chance.choice(services) if services else None

    async def _scale(self, manager: Manager) -> None:
        if (service := self._some(manager)) is None or service.spec.mode.replicated is None:
            return
        spec = copied(service.spec)
        spec.mode = Mode(replicated=Replicated(replicas=self.chance.randrange(6)))
        await self._change(manager, service, spec)

    async def _update(self, manager: Manager) -> None:
        if (service := self._some(manager)) is None or service.spec.mode.is_job:
            return
        spec = copied(service.spec)
        assert spec.task_template.container_spec is not None
        spec.task_template.container_spec.image = self.chance.choice(["steady", "steady", "flaky", "crash"])
        spec.task_template.container_spec.labels = {"v": str(self.chance.getrandbits(30))}
        await self._change(manager, service, spec)

    async def _change(self, manager: Manager, service: Service, spec: ServiceSpec) -> None:
        changed = changed_to(service, spec, [], False, manager.clock)
        await manager.store.save(changed)
        self.say(f"client: service {spec.name} is another one")
        manager.reconciler.wake(service.id)

    async def _drain(self, manager: Manager) -> None:
        node = self.chance.choice(sorted(manager.store.nodes.values(), key=lambda one: one.id))
        spec = msgspec.structs.replace(
            node.spec, availability=self.chance.choice(["drain", "active", "active", "pause"])
        )
        await manager.nodes.update(node.id, spec, node.version)
        self.say(f"client: node {node.id} is {spec.availability}")
        manager.reconciler.wake()

    async def _demote(self, manager: Manager) -> None:
        nodes = sorted(manager.store.nodes.values(), key=lambda one: one.id)
        node = self.chance.choice([one for one in nodes if one.is_manager or self.chance.random() < 0.5])
        role = "manager" if node.spec.role == "worker" and self.chance.random() < 0.6 else "worker"
        await manager.nodes.update(node.id, msgspec.structs.replace(node.spec, role=role), node.version)
        self.say(f"client: node {node.id} is to be a {role}")

    async def _remove(self, manager: Manager) -> None:
        if (service := self._some(manager)) is not None:
            self.removed.add(service.id)
            await manager.store.delete(service)
            self.say(f"client: service {service.spec.name} is removed")
            manager.reconciler.wake(service.id)

    async def _use_addresses(self, manager: Manager) -> None:
        """As containers do that come to a network and go; all this host has of the time before goes first."""
        while not manager.ready or NETWORK not in manager.networks.networks:
            await asyncio.sleep(0.5)
        network, name = manager.networks.networks[NETWORK], manager.host.name
        mine: list[Place] = []
        for place in list(manager.networks.on(name)):
            mine.append(place)
        while True:
            await asyncio.sleep(self.chance.uniform(0.2, 3))
            try:
                if mine and self.chance.random() < 0.5:
                    place = mine.pop()
                    self.held.pop(place.address, None)
                    if all(other.mac != place.mac for other in mine):
                        self.held.pop(place.mac, None)
                    manager.networks.underway.discard(place.key)
                    await manager.networks.give_back([place])
                elif len(mine) < 6:
                    options = EndpointOptions(mac=self.chance.choice(["", "", *MACS]))
                    for place in await manager.networks.take(network, Occupant("endpoint"), options):
                        for what in (place.address, place.mac):
                            if (other := self.held.setdefault(what, name)) != name:
                                self._violated(f"{name} and {other} have {what}")
                        mine.append(place)
            except HuskError as error:
                self.say(f"{name}: address: {error.message}")

    # --- what must hold

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def say(self, told: str) -> None:
        line = f"{self.now:8.3f} {told}"
        self.told.append(line)
        self._tell(line)

    def _violated(self, what: str) -> None:
        self.say(f"VIOLATED: {what}")
        if self._violation is None:
            self._violation = Violation(f"seed {self.seed}, after {self.now:.3f} s: {what}")

    def _written(self) -> None:
        """A transaction counts: look at what it wrote."""
        revision = self.etcd.revision
        for event in self.etcd.last_events:
            assert event.kv is not None
            kind, key = name_of(event.kv.key)
            found = self.etcd.records.get(event.kv.key)
            body = None if found is None else with_version(found.value, found.mod_revision)
            for manager in self._managers():
                self._look_at_memory(manager, kind, key)
            if kind not in KINDS:
                continue
            record = None if body is None else msgspec.json.decode(body, type=KINDS[kind])
            if record is not None and found is not None:
                self._forms[kind, key, found.mod_revision] = _form(record)
            if kind == "task":
                self._note_task(key, cast("Task | None", record))
            elif kind == "service":
                self._note_service(key, cast("Service | None", record))
            elif isinstance(record, Node):
                self._note_node(key, record)
        self._found_at = revision

    def _note_node(self, key: str, node: Node) -> None:
        before, self.nodes[key] = self.nodes[key], node
        managers = {one.id for one in self.nodes.values() if one.is_manager}
        if not managers:
            self._violated("no node is to be a manager any more")
        # A member that is on its way out counts for nobody.
        if (
            before.is_manager
            and not node.is_manager
            and key in self.etcd.voters
            and (left := self.etcd.voters & managers)
        ):
            self._there_at |= dict.fromkeys(self.etcd.majority(), self.now)
            there = {name for name in left if self._there_at.get(name, 0.0) > self.now - ASKED}
            if len(there) < len(left) // 2 + 1:
                self._violated(
                    f"{key} is demoted, though of the managers {sorted(left)} only {sorted(there)} are there"
                )

    def _look_at_memory(self, manager: Manager, kind: str, key: str) -> None:
        """Check that this manager has this record as it was written when it had that version."""
        if kind not in KINDS or manager.process.dead or not manager.ready:
            return
        known = manager.store._tables[kind].get(key)
        if isinstance(known, Task) and _is_large(known.spec):
            return  # that costs too much
        if isinstance(known, Service) and _is_large(known.spec.task_template):
            return
        if known is not None and self._forms.get((kind, key, known.version)) != _form(known):
            self._violated(f"{manager.host.name} has {kind} {key} as it was not written with version {known.version}")

    def _note_service(self, key: str, service: Service | None) -> None:
        if service is None:
            self.services.pop(key, None)
            if key not in self.removed:
                self._violated(f"service {key} is gone, which nobody has removed")
        else:
            self.services[key] = service
            config = service.spec.update_config
            if config is not None and config.order == "start-first":
                self._overlapping.add(key)

    def _most_at_once(self, service_id: str) -> int:
        """Return how many tasks of one slot may be alive and wanted at once. Those of a service that was removed in
        the middle of its update end together."""
        return 2 if service_id in self._overlapping else 1

    def _note_task(self, key: str, task: Task | None) -> None:
        before = self.tasks.pop(key, None)
        if before is not None:
            self._slots[_slot(before)].discard(key)
        if task is None:
            return
        self.tasks[key] = task
        if not (task.alive and task.wanted):
            return
        beside = self._slots[_slot(task)]
        beside.add(key)
        if len(beside) > self._most_at_once(task.service_id):
            self._violated(f"tasks {sorted(beside)} of slot {_slot(task)} are alive and wanted at once")

    def _ending(self, host: Host, record: Container) -> None:
        """Somebody stops or removes a container."""
        task = self.tasks.get(record.config.labels[TASK_LABEL])
        if (
            task is not None
            and task.wanted
            and task.alive
            and record.state.running
            and task.service_id in self.services
        ):
            self._violated(f"{host.name} ends a container of task {task.id}, which is wanted")

    async def _watch(self) -> None:
        for second in count():
            await asyncio.sleep(1)
            for service in self.acknowledged - self.removed:
                if service not in self.services:
                    self._violated(f"service {service} was declared, and is not there")
            # All of what one of them has, in turn: nothing else costs as much.
            managers = self._managers()
            manager = managers[second % len(managers)]
            if not manager.process.dead and manager.ready:
                for kind in KINDS:
                    for key in manager.store._tables[kind]:
                        self._look_at_memory(manager, kind, key)
            self._there_at |= dict.fromkeys(self.etcd.majority(), self.now)
            self._look_side_by_side()

    def _look_side_by_side(self) -> None:
        now = self.now
        found: dict[tuple[str, object], float] = {}
        if not self.etcd.majority() or any(at > now for at in self._trouble_at.values()):
            self._beside = {}
            return
        for slot, where in self._running().items():
            if len(where) > self._most_at_once(slot[0]):
                found[slot] = self._beside.get(slot, now)
                if now - found[slot] > BESIDE:
                    self._violated(f"containers of slot {slot} run side by side on {where}")
        self._beside = found

    def _running(self) -> dict[tuple[str, object], list[str]]:
        """Return the hosts where containers of a slot run."""
        found: defaultdict[tuple[str, object], list[str]] = defaultdict(list)
        for host in self.hosts.values():
            for record in host.containers.running():
                task = self.tasks.get(record.config.labels[TASK_LABEL])
                service_id = record.config.labels[SERVICE_LABEL]
                found[_slot(task) if task is not None else (service_id, record.name)].append(host.name)
        return found

    # --- the end

    async def _settle(self) -> None:
        end, settled_at = self.now + SETTLE, None
        while settled_at is None or self.now < settled_at + STAY:
            await self._until(1)
            if wrong := self._unsettled():
                settled_at = None
            elif settled_at is None:
                settled_at = self.now
            if self.now > end:
                self._violated(f"it does not settle: {'; '.join(wrong[:6])}")
        self.say("it has settled")

    def _unsettled(self) -> list[str]:
        """Return the things that are not as they are declared; empty if all are."""
        wrong = []
        running: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for host in self.hosts.values():
            for record in host.containers.running():
                labels = record.config.labels
                running[labels[SERVICE_LABEL]].append((host.name, labels[TASK_LABEL]))
        for node in self.nodes.values():
            if node.status.state != "ready":
                wrong.append(f"node {node.id} is {node.status.state}")
            if node.is_manager != (node.id in self.manages):
                wrong.append(f"node {node.id} is to be a {node.spec.role}, and is none")
        for service_id in running:
            if service_id not in self.services:
                wrong.append(f"containers of the removed service {service_id}: {running[service_id]}")
        for task in self.tasks.values():
            if _is_large(task.spec):
                continue  # what becomes of it may be more than can be written
            if task.alive and not task.wanted:
                wrong.append(f"task {task.id} is {task.status.state}, and not wanted")
            elif task.service_id not in self.services:
                wrong.append(f"task {task.id} of a removed service")
        for service in self.services.values():
            wrong += self._unlike(service, running.get(service.id, []))
        return wrong

    def _unlike(self, service: Service, running: list[tuple[str, str]]) -> list[str]:
        name, mode = service.spec.name, service.spec.mode
        container = service.spec.task_template.container_spec
        status = service.update_status
        places = sorted(node.id for node in self.nodes.values() if node.spec.availability == "active")
        if container is None or _is_large(service.spec.task_template) or container.image in ("crash", "bad"):
            return []
        if status is not None and status.state in ("paused", "rollback_paused"):
            return []
        if status is not None and status.state in ("updating", "rollback_started") and places:
            return [f"{name} is still {status.state}"]
        tasks = [task for task in self.tasks.values() if task.service_id == service.id]
        live = [task for task in tasks if task.alive and task.wanted]
        if mode.replicated_job is not None:
            done = {task.slot for task in tasks if task.status.state == "complete"}
            return [f"job {name} has done {sorted(done)}"] if len(done) < 3 and places else []
        places_of_tasks = [str(_slot(task)[1]) for task in live]
        if mode.is_global:
            kept = {node.id for node in self.nodes.values() if node.spec.availability == "pause"}
            places_of_tasks = [place for place in places_of_tasks if place not in kept]
            live = [task for task in live if task.node_id not in kept]
            running = [(host, task) for host, task in running if host not in kept]
            fits = sorted(places_of_tasks) == places
        elif not places:
            return []
        else:
            # Which numbers they have depends on which of them ran when it was scaled down.
            wanted = mode.replicated.replicas if mode.replicated is not None else 1
            fits = len(places_of_tasks) == len(set(places_of_tasks)) == wanted
        problems = []
        if not fits:
            problems.append(f"{name} has slots {sorted(places_of_tasks)}")
        for task in live:
            if task.status.state != "running":
                problems.append(f"{name}: task {task.id} is {task.status.state}: {task.status.err}")
            elif (task.node_id, task.id) not in running:
                problems.append(f"{name}: task {task.id} has no container on {task.node_id}")
            elif task.spec_version != service.spec_version:
                problems.append(f"{name}: task {task.id} has version {task.spec_version}, not {service.spec_version}")
        if len(running) != len(live):
            problems.append(f"{name}: {len(running)} containers, {len(live)} tasks")
        return problems


def _is_large(template: TaskSpec) -> bool:
    return template.container_spec is not None and bool(template.container_spec.env)


def _form(record: msgspec.Struct) -> bytes:
    """All of a record that is not counted by the clock of whoever has it in memory."""
    if isinstance(record, Task):
        status = msgspec.structs.replace(record.status, since_ns=0, started_ns=0)
        record = msgspec.structs.replace(record, version=0, created_ns=0, restarts=(), status=status)
    elif isinstance(record, Service):
        record = msgspec.structs.replace(record, version=0, update_began_ns=0)
    elif isinstance(record, Node):
        status_of_node = msgspec.structs.replace(record.status, since_ns=0)
        record = msgspec.structs.replace(record, version=0, status=status_of_node)
    elif isinstance(record, Swarm):
        record = msgspec.structs.replace(record, version=0)
    return hashlib.sha256(msgspec.json.encode(record)).digest()


def _slot(task: Task) -> tuple[str, object]:
    return task.service_id, task.slot or task.node_id
