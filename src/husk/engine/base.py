"""The base of all rooms of the core: the records of a data root, and this host with what drives containers on it."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

from husk.aio.tasks import Tasks
from husk.claims import claimed_roots
from husk.config import Config
from husk.engine.host import EngineHost
from husk.engine.migrations import STEPS
from husk.engine.model.events import Events
from husk.errors import HuskError, Unavailable
from husk.runtime.assembly.assembly import Assembly
from husk.runtime.assembly.leftovers import Leftovers, discard_former
from husk.runtime.assembly.paths import Paths
from husk.runtime.runtimes import Runtimes, find_runtimes
from husk.runtime.supervise.conmon import LeanMounts, Monitor, Moves
from husk.runtime.supervise.exec import ExecMonitor
from husk.storage.lost import put_aside
from husk.storage.state.store import StateStore
from husk.storage.workers.nursery import Nursery
from husk.watch import Watch

log = logging.getLogger(__name__)


class Base(NamedTuple):
    """The records of a data root that is ours, and those who hear of what is done."""

    config: Config
    tasks: Tasks
    state: StateStore
    events: Events
    watch: Watch


class HostParts(NamedTuple):
    """This host, and what drives containers on it."""

    facts: EngineHost
    runtimes: Runtimes
    nursery: Nursery
    assembly: Assembly
    leftovers: Leftovers
    lean: LeanMounts
    monitor: Monitor
    exec_monitor: ExecMonitor


async def open_base(config: Config, stack: AsyncExitStack) -> Base:
    stack.enter_context(claimed_roots(config))
    owed = config.exec_root / "state.owed"
    state = await asyncio.to_thread(StateStore.open, config.data_root / "state.db", owed, STEPS)
    stack.callback(state.close)
    return Base(config, Tasks(), state, Events(), Watch())


async def open_host(config: Config, stack: AsyncExitStack, open_files: int) -> HostParts:
    runtimes = await find_runtimes(config)
    stack.callback(runtimes.close)
    facts = await asyncio.to_thread(EngineHost.probe, runtimes.default.name, open_files, config)
    if not facts.conmon_path:
        raise Unavailable("conmon is not installed: run `husk doctor --fix`")
    await asyncio.to_thread(discard_former, config.data_root)
    nursery = Nursery()
    stack.callback(nursery.close)
    paths, aside = Paths(config), partial(put_aside, config.data_root)
    assembly = Assembly(paths)
    await as_far_as_possible(asyncio.to_thread(assembly.make_mount_points, aside), "mount points of containers")
    moves = Moves()
    programs = [facts.conmon_path, facts.init_path, runtimes.default.path]
    needed = [config.data_root, paths.volumes, config.exec_root, *filter(None, programs)]
    lean = LeanMounts([str(path) for path in needed])
    stack.callback(lean.close)
    return HostParts(
        facts=facts,
        runtimes=runtimes,
        nursery=nursery,
        assembly=assembly,
        leftovers=Leftovers(paths, aside),
        lean=lean,
        monitor=Monitor(facts.conmon_path, moves, lean),
        exec_monitor=ExecMonitor(facts.conmon_path, moves),
    )


async def as_far_as_possible(work: Coroutine[object, object, object], what: str) -> None:
    """Await work; what cannot be done, on a full disk for example, is logged and keeps the daemon from nothing else."""
    try:
        await work
    except (HuskError, OSError) as error:
        log.error("%s: %s", what, error)
