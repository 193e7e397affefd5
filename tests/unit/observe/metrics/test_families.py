"""One registry of our own, with dockerd's names where they mean the same."""

from prometheus_client import REGISTRY, generate_latest

from husk.observe.metrics.families import Families

# As dockerd 28.5 tells them (name and type), of those that are counted as things happen.
DOCKERD = {
    "engine_daemon_container_actions_seconds": "histogram",
    "engine_daemon_events_total": "counter",
    "engine_daemon_health_checks_failed_total": "counter",
    "engine_daemon_health_checks_total": "counter",
    "builder_builds_failed_total": "counter",
    "builder_builds_triggered_total": "counter",
    "process_cpu_seconds_total": "counter",
    "process_open_fds": "gauge",
    "process_resident_memory_bytes": "gauge",
    "process_start_time_seconds": "gauge",
}


def types(text: str) -> dict[str, str]:
    """Names and types in what Prometheus is told."""
    lines = (line.split() for line in text.splitlines() if line.startswith("# TYPE "))
    return {name: kind for _, _, name, kind in lines}


def test_names_and_types_are_those_of_dockerd() -> None:
    found = types(generate_latest(Families().registry).decode())
    assert {name: found.get(name) for name in DOCKERD} == DOCKERD


def test_actions_have_the_labels_of_dockerd_from_the_start() -> None:
    text = generate_latest(Families().registry).decode()
    for action in ("changes", "commit", "create", "delete", "start"):
        assert f'engine_daemon_container_actions_seconds_count{{action="{action}"}} 0.0' in text


def test_two_registries_do_not_know_each_other_nor_the_global_one() -> None:
    one, other = Families(), Families()
    one.events.inc()
    assert "engine_daemon_events_total 1.0" in generate_latest(one.registry).decode()
    assert "engine_daemon_events_total 0.0" in generate_latest(other.registry).decode()
    assert "engine_daemon" not in generate_latest(REGISTRY).decode()


def test_there_is_no_second_series_for_each_counter() -> None:
    assert "_created" not in generate_latest(Families().registry).decode()
