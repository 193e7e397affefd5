"""Facts that are looked up for a scrape, and those that are left out of it."""

from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from husk.engine.containers.stats import BriefMeasure, RunningContainer
from husk.kernel.brief_usage import BriefUsage
from husk.observe.metrics.facts import FactCollector, gather
from tests.unit.observe.metrics.played_engine import played

RUNNERS = [RunningContainer(f"{number:064x}", f"c{number}", "busybox", f"/husk/{number}", 0) for number in range(5)]


def measured(path: str, pid: int) -> BriefUsage | None:
    return BriefUsage(memory=1)


def scrape(data_root: Path, limit: int, patience: float = 60.0, measure: BriefMeasure = measured) -> str:
    engine = played(data_root, RUNNERS)
    collector, registry = FactCollector(engine, limit, patience, measure), CollectorRegistry()
    registry.register(collector)
    collector.look(gather(engine))
    return generate_latest(registry).decode()


def test_all_facts_are_told(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"x" * 100)
    (tmp_path / "state.db-wal").write_bytes(b"x" * 11)
    told = scrape(tmp_path, 1000).splitlines()
    for line in (
        'engine_daemon_container_states_containers{state="running"} 5.0',
        'engine_daemon_container_states_containers{state="paused"} 1.0',
        'engine_daemon_container_states_containers{state="stopped"} 2.0',
        'husk_containers{state="exited"} 2.0',
        "engine_daemon_engine_cpus_cpus 4.0",
        "engine_daemon_events_subscribers_total 3.0",
        "husk_store_images 2.0",
        "husk_store_layers 4.0",
        "husk_store_layers_bytes 4096.0",
        "husk_store_blobs 6.0",
        "husk_store_blobs_bytes 6000.0",
        "husk_store_state_bytes 111.0",
        "husk_builder_cache_records 5.0",
        "husk_builder_cache_bytes 600.0",
        "husk_workers_started_total 9.0",
        "husk_worker_processes 1.0",
        "husk_containers_measured 5.0",
        "husk_containers_left_out 0.0",
    ):
        assert line in told, line


def test_the_engine_is_told_with_the_labels_of_dockerd(tmp_path: Path) -> None:
    (line,) = [line for line in scrape(tmp_path, 0).splitlines() if line.startswith("engine_daemon_engine_info{")]
    names = [part.partition("=")[0] for part in line.partition("{")[2].rpartition("}")[0].split(",")]
    assert sorted(names) == [
        "architecture", "commit", "daemon_id", "graphdriver", "kernel", "os", "os_type", "os_version", "version",
    ]  # fmt: skip


def test_no_more_containers_are_told_than_the_limit_allows(tmp_path: Path) -> None:
    told = scrape(tmp_path, 2)
    assert "husk_containers_measured 2.0" in told
    assert "husk_containers_left_out 3.0" in told
    assert told.count("husk_container_memory_usage_bytes{") == 2
    assert "husk_container_memory_usage_bytes{" not in scrape(tmp_path, 0)


def test_a_scrape_that_takes_too_long_leaves_some_out(tmp_path: Path) -> None:
    assert "husk_containers_left_out 5.0" in scrape(tmp_path, 1000, patience=-1.0)


def test_a_container_that_has_just_ended_is_left_out(tmp_path: Path) -> None:
    def ended(path: str, pid: int) -> BriefUsage | None:
        return None if path.endswith("0") else BriefUsage()

    assert "husk_containers_measured 4.0" in scrape(tmp_path, 1000, measure=ended)
