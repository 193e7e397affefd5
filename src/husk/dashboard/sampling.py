"""The resources that containers use, measured once for all who look, and kept for the charts of the last hour.

While nobody looks every running container is measured a few times a minute; while a page is open those that it shows,
every two seconds, or less often where there are so many that measuring them takes long.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from husk.aio.tasks import Tasks
from husk.client.client import Client
from husk.client.container import Container
from husk.client.stats import Stats, stats
from husk.dashboard.live import Message
from husk.errors import HuskError

log = logging.getLogger(__name__)

# Seconds between two measures of everything, and of what somebody looks at.
SLOW = 15.0
QUICK = 2.0
# Of the time at most this part is spent on measuring.
_PART = 0.2
# What is kept of one container: an hour.
KEPT = 360
_BETWEEN = 3600 / KEPT
# Points that a small chart has.
_SPARK = 20
_AT_ONCE = 4
_MOST_CONTAINERS = 2000
# The words for all containers that run.
ALL = "all"


class UsageSample(msgspec.Struct, frozen=True):
    """A container's use of resources at one moment. Network and disk are bytes per second since the moment before."""

    time: float
    cpu: float | None
    memory: int
    limit: int
    received: float | None
    sent: float | None
    read: float | None
    written: float | None
    pids: int


class Measured(msgspec.Struct):
    """The measurements of one container: the newest, and those that are kept for its charts."""

    now: UsageSample
    # What the next measurement is compared with; nothing for the sum of all containers.
    last: Stats | None
    kept: deque[UsageSample]
    # Points of its small charts, ready for pages.
    sparks: Mapping[str, str] = {}

    def keep(self, sample: UsageSample) -> None:
        self.kept.append(sample)
        recent = list(self.kept)[-_SPARK:]
        self.sparks = {kind: points(recent, kind) for kind in ("cpu", "memory", "network", "disk")}


class Sampler:
    """Measures the containers of one engine."""

    def __init__(self, engine: Client, tasks: Tasks, quick: float = QUICK, slow: float = SLOW) -> None:
        self._quick = quick
        self._slow = slow
        self._engine = engine
        self._tasks = tasks
        self._known: dict[str, Measured] = {}
        self._watched: dict[asyncio.Queue[Message], str] = {}
        self._wake = asyncio.Event()
        self._room = asyncio.Semaphore(_AT_ONCE)

    def start(self) -> None:
        self._tasks.spawn(self._run(), "stats for the dashboard")

    def latest(self, container: str) -> UsageSample | None:
        found = self._known.get(container)
        return found.now if found else None

    def measured(self, container: str) -> "Measured | None":
        return self._known.get(container)

    def level(self, container: str, kind: str) -> float | None:
        """The use of one kind by a container now, as its small chart shows it; None where that is not known."""
        found = self._known.get(container)
        return level(found.now, kind) if found else None

    def history(self, container: str) -> list[UsageSample]:
        """The last hour, oldest first."""
        found = self._known.get(container)
        return list(found.kept) if found else []

    @contextmanager
    def watching(self, which: str, queue: "asyncio.Queue[Message]") -> Iterator[None]:
        """Tell the samples of a container, or of all, as messages `stats`, to one who looks."""
        self._watched[queue] = which
        self._wake.set()
        try:
            yield
        finally:
            del self._watched[queue]

    async def _run(self) -> None:
        all_measured = float("-inf")
        while True:
            begun = time.monotonic()
            try:
                everything = begun - all_measured >= self._slow or ALL in self._watched.values()
                if everything:
                    all_measured = begun
                await self._measure(everything)
            except HuskError as error:
                log.debug("containers cannot be measured: %s", error.message)
            except Exception as error:  # what is no measurement, of an engine that lies: it may tell the truth later
                log.warning("what containers use cannot be read: %r", error)
            spent = time.monotonic() - begun
            pause = max(self._quick if self._watched else self._slow, spent / _PART)
            self._wake.clear()
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
                    # Somebody comes to look: not at once again, where many come.
                    await asyncio.sleep(min(self._quick, spent / _PART) / 4)
            except TimeoutError:
                continue

    async def _measure(self, everything: bool) -> None:
        running = {each.id: each for each in await self._engine.containers.list()}
        if everything:
            for gone in self._known.keys() - running.keys() - {ALL}:
                del self._known[gone]
        wanted = (
            list(running.values())
            if everything
            else [running[each] for each in set(self._watched.values()) if each in running]
        )
        found = await asyncio.gather(*(self._one(each) for each in wanted[:_MOST_CONTAINERS]))
        samples = {identifier: sample for identifier, sample in found if sample is not None}
        if everything:
            samples[ALL] = self._keep(ALL, together(samples.values()), None)
        for queue, which in self._watched.items():
            told = samples if which == ALL else {which: samples[which]} if which in samples else None
            # Who does not read gets the next ones.
            if told and queue.qsize() < 2:
                queue.put_nowait(("stats", told))

    async def _one(self, container: Container) -> tuple[str, UsageSample | None]:
        async with self._room:
            try:
                found = await container.stats_now(one_shot=True)
            except HuskError:
                return container.id, None  # it has ended meanwhile
        known = self._known.get(container.id)
        return container.id, self._keep(container.id, sample(found, known.last if known else None), found)

    def _keep(self, name: str, now: UsageSample, last: Stats | None) -> UsageSample:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = Measured(now, last, deque(maxlen=KEPT))
            known.keep(now)
        else:
            known.now, known.last = now, last
            if now.time - known.kept[-1].time >= _BETWEEN:
                known.keep(now)
        return now


def sample(now: Stats, before: Stats | None) -> UsageSample:
    """Make the sample of a container at one moment; counters that only grow are compared with the moment before."""
    moment = now.time.timestamp()
    seconds = moment - before.time.timestamp() if before else 0.0
    if before is None or seconds <= 0:
        return UsageSample(moment, None, now.memory_usage, now.memory_limit, None, None, None, None, now.pids)
    compared = stats({**now.attrs, "precpu_stats": before.attrs.get("cpu_stats")})
    return UsageSample(
        moment,
        round(compared.cpu_percent, 2),
        now.memory_usage,
        now.memory_limit,
        _rate(now.network_received, before.network_received, seconds),
        _rate(now.network_sent, before.network_sent, seconds),
        _rate(now.block_read, before.block_read, seconds),
        _rate(now.block_written, before.block_written, seconds),
        now.pids,
    )


def together(samples: Iterable[UsageSample]) -> UsageSample:
    """Sum what containers use. What is not known of one yet counts nothing."""
    found = list(samples)

    def summed(name: str) -> float:
        return round(sum(getattr(each, name) or 0 for each in found), 2)

    return UsageSample(
        time=time.time(),
        cpu=summed("cpu"),
        memory=int(summed("memory")),
        limit=int(summed("limit")),
        received=summed("received"),
        sent=summed("sent"),
        read=summed("read"),
        written=summed("written"),
        pids=int(summed("pids")),
    )


def _rate(now: int, before: int, seconds: float) -> float:
    """Counters of a container that was started again begin anew."""
    return round(max(0, now - before) / seconds, 1)


def series(samples: Iterable[UsageSample]) -> Mapping[str, list[list[Any]]]:
    """Points of each chart, as `charts.js` takes them: [time, value]."""
    names = ("cpu", "memory", "received", "sent", "read", "written", "pids")
    kept = list(samples)
    return {name: [[round(each.time, 1), getattr(each, name)] for each in kept] for name in names}


def points(samples: Iterable[UsageSample], kind: str) -> str:
    """The points of a small chart, as `stats.js` takes them from a page."""
    levels = (level(each, kind) for each in samples)
    return " ".join(f"{each:g}" for each in levels if each is not None)


def level(sample: UsageSample, kind: str) -> float | None:
    """The use of one kind in one number: of the network and the disk, both directions together."""
    if kind == "cpu":
        return sample.cpu
    if kind == "memory":
        return sample.memory
    one, other = (sample.received, sample.sent) if kind == "network" else (sample.read, sample.written)
    return None if one is None or other is None else one + other
