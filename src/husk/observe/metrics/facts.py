"""Facts that are looked up when somebody asks for the metrics.

`gather` runs on the event loop and only counts what is in memory; `FactCollector.look` reads files, in a thread. Both
are kept short: a scrape has a second, and what does not fit into it is left out and counted.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from husk.composition import Engine
from husk.engine.containers.stats import BriefMeasure, RunningContainer, brief
from husk.engine.system import STORAGE_DRIVER, DaemonInfo
from husk.kernel.brief_usage import BriefUsage
from husk.observe.metrics import containers
from husk.runtime.assembly import usage as usages

# Seconds that the numbers of containers may take: the rest of a scrape's second is for all else.
PATIENCE = 0.5

STATES = ("created", "running", "paused", "restarting", "removing", "exited", "dead")


class Gathered(msgspec.Struct, frozen=True):
    """The facts that are in memory."""

    info: DaemonInfo
    states: Mapping[str, int]
    listeners: int
    images: int
    layers: int
    layers_size: int
    builds: tuple[int, int]
    workers: int
    runners: Sequence[RunningContainer]


def gather(engine: Engine) -> Gathered:
    statistics, images, builder = engine.verbs.statistics, engine.images, engine.builder.made
    return Gathered(
        info=engine.system.info(),
        states=statistics.states(),
        listeners=engine.events.listeners,
        images=len(images),
        layers=images.layers_count(),
        layers_size=images.layers_size(),
        builds=builder.cache_usage() if builder is not None else (0, 0),
        workers=engine.workers_employed,
        runners=statistics.runners(),
    )


class FactCollector(Collector):
    """Gives what was looked up last as samples."""

    def __init__(
        self,
        engine: Engine,
        limit: int,
        patience: float = PATIENCE,
        measure: BriefMeasure = usages.brief,
    ) -> None:
        """Of at most `limit` containers their own numbers are told, as far as `patience` lasts for `measure`."""
        self._patience = patience
        self._measure = measure
        self._engine = engine
        self._limit = limit
        self._samples: list[Metric] = []

    def look(self, gathered: Gathered) -> None:
        """Read what is in files. For a thread."""
        deadline = time.monotonic() + self._patience
        blobs = self._engine.images.blobs_usage()
        state = _size_of_state(self._engine.config.data_root)
        processes = self._engine.worker_processes()
        chosen = gathered.runners[: self._limit]
        found = brief(chosen, deadline, self._measure)
        self._samples = [
            *of_engine(gathered),
            *of_store(gathered, blobs, state),
            *of_workers(gathered.workers, processes),
            *of_containers(gathered, found),
        ]

    def collect(self) -> Iterator[Metric]:
        return iter(self._samples)

    def describe(self) -> Iterator[Metric]:
        return iter(())


def of_engine(gathered: Gathered) -> Iterator[Metric]:
    info, states = gathered.info, gathered.states
    running, paused = states.get("running", 0), states.get("paused", 0)
    by_state = GaugeMetricFamily(
        "engine_daemon_container_states_containers",
        "Containers by state, those that do not run as stopped",
        labels=["state"],
    )
    for state, count in (
        ("paused", paused), ("running", running), ("stopped", sum(states.values()) - running - paused)
    ):  # fmt: skip
        by_state.add_metric([state], count)
    yield by_state
    ours = GaugeMetricFamily("husk_containers", "Containers by the state that docker inspect shows", labels=["state"])
    for state in STATES:
        ours.add_metric([state], states.get(state, 0))
    yield ours
    yield _gauge("engine_daemon_engine_cpus_cpus", "Processors of the host", info.cpus)
    yield _gauge("engine_daemon_engine_memory_bytes", "Memory of the host", info.memory)
    yield _gauge("engine_daemon_events_subscribers_total", "Clients that listen to events", gathered.listeners)
    labels = {
        "architecture": info.machine,
        "commit": "",
        "daemon_id": info.engine_id,
        "graphdriver": STORAGE_DRIVER,
        "kernel": info.kernel,
        "os": info.operating_system,
        "os_type": "linux",
        "os_version": info.os_version,
        "version": info.version,
    }
    about = GaugeMetricFamily("engine_daemon_engine_info", "What the daemon and its host are", labels=list(labels))
    about.add_metric(list(labels.values()), 1)
    yield about


def of_store(gathered: Gathered, blobs: tuple[int, int], state: int) -> Iterator[Metric]:
    yield _gauge("husk_store_images", "Images in the store", gathered.images)
    yield _gauge("husk_store_layers", "Layers in the store", gathered.layers)
    yield _gauge("husk_store_layers_bytes", "Bytes of all layers as they are unpacked", gathered.layers_size)
    yield _gauge("husk_store_blobs", "Blobs in the store", blobs[0])
    yield _gauge("husk_store_blobs_bytes", "Bytes of all blobs", blobs[1])
    yield _gauge("husk_store_state_bytes", "Bytes of the database with all records, and of its log", state)
    yield _gauge(
        "husk_builder_cache_records", "Records in the cache of builds (0 before the first one)", gathered.builds[0]
    )
    yield _gauge("husk_builder_cache_bytes", "Bytes in the cache of builds, without cache mounts", gathered.builds[1])


def of_workers(employed: int, processes: int) -> Iterator[Metric]:
    started = CounterMetricFamily("husk_workers_started", "Worker processes that were given work")
    started.add_metric([], employed)
    yield started
    yield _gauge("husk_worker_processes", "Worker processes that there are now", processes)


def of_containers(gathered: Gathered, found: Sequence[tuple[RunningContainer, BriefUsage]]) -> Iterator[Metric]:
    yield _gauge("husk_containers_measured", "Running containers whose own metrics are told below", len(found))
    yield _gauge(
        "husk_containers_left_out", "Running containers beyond the limit of metrics-containers, or of a scrape's time",
        len(gathered.runners) - len(found),
    )  # fmt: skip
    yield from containers.samples(found)


def _gauge(name: str, help: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help, value=value)


def _size_of_state(data_root: Path) -> int:
    total = 0
    for name in ("state.db", "state.db-wal"):
        try:
            total += os.stat(data_root / name).st_size
        except OSError:
            continue
    return total
