"""All containers, in memory, by id and by name; each change of a record is written through to the store."""

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator
from functools import partial
from typing import Protocol, TypeAlias

import msgspec

from husk.aio.tasks import Tasks
from husk.engine.containers import states
from husk.engine.containers.attach import Switchboard
from husk.engine.containers.drivers import Process, Supervised
from husk.engine.model import container
from husk.engine.model.container import KIND, Container, Draft, changes
from husk.engine.model.events import Events
from husk.engine.model.names import random_name
from husk.engine.networks.endpoints import link_names
from husk.errors import Conflict, InvalidParameter, NotFound, SystemFault
from husk.storage.state.store import Change, StateStore
from husk.text.patterns import pattern

_NAME = pattern(r"/?[a-zA-Z0-9][a-zA-Z0-9_.-]+", re.ASCII)
_encode = msgspec.json.Encoder().encode


class Exit(msgspec.Struct, frozen=True):
    """The outcome of a wait for a container."""

    code: int
    error: str = ""
    oom_killed: bool = False


class Instance:
    """A container as it lives in this daemon: its record and what only memory holds.

    The record is frozen. Work under way makes others in the draft; what `ContainerIndex` has written is
    believed. With the lock held, as is a change of `life`, by the transitions of `states` alone, except for the mark of
    a removal.
    """

    def __init__(self, record: Container, tasks: Tasks, life: states.Life = states.UNSETTLED) -> None:
        """Without a `life` it is one that a former daemon knew, and may have left something of."""
        self.record = record
        self.draft = Draft(record)
        self.life = life
        self.lock = asyncio.Lock()
        self.switchboard = Switchboard(tasks)
        self.restart_delay = 0.0
        self.root_users = 0  # copies under way, which need the root mounted though nothing runs
        self.keepers = 0  # operations that need it after the end of its process, though it would go with that
        # Sets that are made when somebody waits: an empty one takes 0.2 KB, and there may be 1,000 containers.
        self._exits: set[asyncio.Future[Exit]] | None = None
        self._removals: set[asyncio.Future[Exit]] | None = None

    @property
    def id(self) -> str:
        return self.record.id

    def believe(self, record: Container) -> None:
        """Hold another record, which is written, or tells of what is seen and written with the next change."""
        self.record = self.draft.record = record
        changes.note()

    @property
    def process(self) -> Process | None:
        return self.life.supervised.process if isinstance(self.life, states.Alive) else None

    @property
    def supervised(self) -> Supervised | None:
        """The process with its supervisor."""
        return self.life.supervised if isinstance(self.life, states.Alive) else None

    @property
    def doomed(self) -> bool:
        """True while its process is ended only to have it removed."""
        return isinstance(self.life, states.Alive) and self.life.doomed

    @property
    def pending_restart(self) -> asyncio.Task[None] | None:
        """The task that starts it in a while."""
        return self.life.timer if isinstance(self.life, states.Waiting) else None

    @property
    def has_ended(self) -> bool:
        """True when there is no process or it has ended, though that may not be told yet."""
        return self.process is None or self.process.has_ended

    async def runs(self) -> bool:
        """Return True if the container runs; a start under way is waited for: output can be seen before it is told."""
        if not self.record.state.running:
            async with self.lock:
                pass
        return self.record.state.running

    def rest(self) -> None:
        """Let its process go, which has ended or is left to the next daemon, or give up the wait for its next run."""
        self.life = states.resting(self.life)

    @contextlib.contextmanager
    def conflict_if_ended(self) -> Iterator[None]:
        """The runtime refuses a process that has ended, also while that end still waits for our lock to be recorded."""
        try:
            yield
        except SystemFault as fault:
            if self.has_ended:
                raise Conflict(f"container {self.id} is not running") from fault
            raise

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Meanwhile it does not go with its process, as one with `--rm` else does."""
        self.keepers += 1
        try:
            yield
        finally:
            self.keepers -= 1

    def next_exit(self) -> asyncio.Future[Exit]:
        self._exits = self._exits or set()
        return _register(self._exits)

    def removal(self) -> asyncio.Future[Exit]:
        self._removals = self._removals or set()
        return _register(self._removals)

    def announce_exit(self, exit: Exit) -> None:
        _resolve(self._exits, exit)

    def announce_removal(self, exit: Exit) -> None:
        _resolve(self._exits, exit)
        _resolve(self._removals, exit)


Companion: TypeAlias = container.Companion[Instance]


class Publish(Protocol):
    """Tells the world what has happened to a container."""

    def __call__(self, record: Container, action: str, **attributes: str) -> None: ...


def publish_container(events: Events, record: Container, action: str, **attributes: str) -> None:
    """An event of a container, with what clients may choose it by."""
    own = {"image": record.config.image, "name": record.name, **attributes}
    events.publish("container", action, record.id, own, record.config.labels)


def _register(futures: set[asyncio.Future[Exit]]) -> asyncio.Future[Exit]:
    future: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
    futures.add(future)
    future.add_done_callback(futures.discard)
    return future


def _resolve(futures: set[asyncio.Future[Exit]] | None, exit: Exit) -> None:
    for future in list(futures or ()):
        if not future.done():
            future.set_result(exit)


class ContainerIndex:
    """The one owner of container records."""

    def __init__(self, state: StateStore, tasks: Tasks) -> None:
        self._state = state
        self._tasks = tasks
        self._by_id: dict[str, Instance] = {}
        self._by_name: dict[str, str] = {}
        self._fleeting: set[str] = set()
        for record in state.records(KIND, Container).values():
            self._by_id[record.id] = Instance(record, self._tasks)
            self._by_name[record.name] = record.id

    @property
    def aside(self) -> frozenset[str]:
        """The ids of containers whose records cannot be read: nobody knows them, and nothing of theirs is touched."""
        return self._state.aside(KIND)

    def __iter__(self) -> Iterator[Instance]:
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)

    def records(self) -> Iterator[Container]:
        """Yield the records of all containers."""
        return (instance.record for instance in self)

    def mounts(self, chain_id: str) -> bool:
        """Return True if a root may be mounted on this layer: that of a container that runs, or is copied from."""
        mounted = (one.record for one in self if one.record.state.running or one.root_users)
        return any(chain_id in record.used_layers for record in mounted)

    def find(self, reference: str) -> Instance:
        """By full id, exact name, or unique leading part of an id, in that order."""
        if (instance := self._by_id.get(reference)) is not None:
            return instance
        name = reference.removeprefix("/")
        if (named := self._by_name.get(name)) is not None and named in self._by_id:
            return self._by_id[named]
        if (linked := self._by_link(name)) is not None:
            return linked
        matches = [i for i in self._by_id if reference and i.startswith(reference)]
        if len(matches) > 1:
            raise InvalidParameter(f"multiple IDs found with provided prefix: {reference}")
        if not matches:
            raise NotFound(f"No such container: {reference}")
        return self._by_id[matches[0]]

    def _by_link(self, name: str) -> Instance | None:
        """By what another one calls it, such as web/db."""
        parent, slash, _ = name.rpartition("/")
        owner = self._by_id.get(self._by_name.get(parent, "")) if slash else None
        target = link_names(owner.record).get(name) if owner is not None else None
        return self._by_id.get(self._by_name.get(target, "")) if target else None

    def names(self) -> dict[str, list[str]]:
        """All names of each container by its id: its own and those that it has by links, in order."""
        found = {instance.id: [instance.record.name] for instance in self}
        for instance in self:
            if instance.record.host_config.links:
                for name, target in link_names(instance.record).items():
                    if (linked := found.get(self._by_name.get(target, ""))) is not None:
                        linked.append(name)
        return {container_id: sorted(names) for container_id, names in found.items()}

    def present(self, instance: Instance) -> bool:
        return instance.id in self._by_id

    def has(self, container_id: str) -> bool:
        return container_id in self._by_id

    def reserve_name(self, wanted: str, container_id: str) -> str:
        """Take a name for a container that is being made; `release_name` gives it back if the making fails."""
        if not wanted:
            wanted = random_name(self._by_name)
        elif _NAME.fullmatch(wanted) is None:
            raise InvalidParameter(f"Invalid container name ({wanted}), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed")
        name = wanted.removeprefix("/")
        if (owner := self._by_name.get(name)) is not None:
            raise Conflict(
                f'Conflict. The container name "/{name}" is already in use by container "{owner}". '
                "You have to remove (or rename) that container to be able to reuse that name."
            )
        self._by_name[name] = container_id
        return name

    def release_name(self, name: str) -> None:
        self._by_name.pop(name, None)

    def new_id(self) -> str:
        while (candidate := os.urandom(32).hex()) in self._by_id or candidate[:12].isdigit():
            pass
        return candidate

    async def add(self, record: Container, *others: Change) -> Instance:
        """Write a new record, in one transaction with what belongs to it."""
        await self._state.add(_written(record), *others)
        return self._added(record)

    def add_fleeting(self, record: Container) -> Instance:
        """Take one that is to end with this engine, and is known to it alone: the next one finds no record, and clears
        away whatever is left of it."""
        self._fleeting.add(record.id)
        return self._added(record)

    def is_fleeting(self, instance: Instance) -> bool:
        return instance.id in self._fleeting

    def make_lasting(self, instance: Instance) -> None:
        """Write its record from the next change on, if it was fleeting."""
        self._fleeting.discard(instance.id)

    def _added(self, record: Container) -> Instance:
        instance = self._by_id[record.id] = Instance(record, self._tasks, states.SETTLED)
        changes.note()
        return instance

    async def save(self, instance: Instance, record: Container, *, state: bool = False, ahead: bool = False) -> None:
        """Write its record and believe it, or fail. `state` says that its state alone is new, `ahead` that the next
        daemon is to know more than memory tells, which believes it later."""
        if self.is_fleeting(instance):
            self._believe(instance, record, ahead)
            return
        then = partial(self._believe, instance, record, ahead)
        await self._state.commit(_written(record), lazy=state and _forgettable(instance), then=then)

    async def settle(self, instance: Instance, record: Container, *, ahead: bool = False) -> None:
        """Write what has become of it: now, or when the disk has room again. That is not refused. `ahead` as above."""
        if self.is_fleeting(instance) or (instance.doomed and _forgettable(instance)):
            # The record of one that is doomed is about to go; a daemon that comes before that finds its process ended.
            self._believe(instance, record, ahead)
            return
        then = partial(self._believe, instance, record, ahead)
        await self._state.settle(_written(record), lazy=_forgettable(instance), then=then)

    def _believe(self, instance: Instance, record: Container, ahead: bool) -> None:
        if not ahead:
            instance.believe(record)

    async def rename(self, instance: Instance, name: str) -> None:
        """Write the record under a name that was reserved for it, and give the other one back."""
        old = instance.record.name
        try:
            await self.save(instance, msgspec.structs.replace(instance.draft.record, name=name))
        finally:
            # Whoever is cancelled has it written all the same.
            self.release_name(old if instance.record.name == name else name)

    async def delete(self, instance: Instance, *others: Change) -> None:
        """Delete a record, in one transaction with what goes with it. A full disk does not keep it."""
        # One that removes itself would do so again, should it come back.
        lazy = instance.record.host_config.auto_remove
        own = () if self.is_fleeting(instance) else (Change(KIND, instance.id, None),)
        if own or others:
            await self._state.settle(*own, *others, lazy=lazy)
        self._by_id.pop(instance.id, None)
        self._fleeting.discard(instance.id)
        with contextlib.suppress(KeyError):
            if self._by_name[instance.record.name] == instance.id:
                del self._by_name[instance.record.name]
        changes.note()


def _written(record: Container) -> Change:
    return Change(KIND, record.id, _encode(record))


def _forgettable(instance: Instance) -> bool:
    """Return True if nobody need wait until what became of the container's process is on the disk.

    After a power cut none runs, and nobody reads that but a restart policy.
    """
    return instance.record.host_config.restart_policy.name in ("", "no")
