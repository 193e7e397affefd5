"""Counts of the engine's actions."""

import asyncio

import pytest
from prometheus_client import generate_latest

from husk.errors import NotFound
from husk.observe.metrics.families import Families
from husk.observe.metrics.observe import EngineMetrics


def text(families: Families) -> str:
    return generate_latest(families.registry).decode()


def test_starts_and_pulls_are_counted_with_their_outcome() -> None:
    families = Families()
    metrics = EngineMetrics(families)
    with metrics.action("start", {"container": "x"}):
        pass
    with pytest.raises(NotFound), metrics.action("pull", {"image": "x"}):
        raise NotFound("x")
    told = text(families)
    assert 'husk_container_start_seconds_count{outcome="ok"} 1.0' in told
    assert 'engine_daemon_container_actions_seconds_count{action="start"} 1.0' in told
    assert 'husk_image_pull_seconds_count{outcome="failed"} 1.0' in told


def test_builds_fail_or_are_given_up() -> None:
    families = Families()
    metrics = EngineMetrics(families)
    for error in (NotFound("x"), asyncio.CancelledError()):
        with pytest.raises(type(error)), metrics.action("build", {}):
            raise error
    told = text(families)
    assert "builder_builds_triggered_total 2.0" in told
    assert 'builder_builds_failed_total{reason="build_canceled"} 1.0' in told
    assert 'builder_builds_failed_total{reason="error_processing_commands_error"} 1.0' in told


def test_steps_and_health_checks_are_counted() -> None:
    families = Families()
    metrics = EngineMetrics(families)
    metrics.count("build-step", {"outcome": "cached"})
    metrics.count("health-check", {"outcome": "failed"})
    metrics.count("health-check", {"outcome": "passed"})
    told = text(families)
    assert 'husk_builder_steps_total{outcome="cached"} 1.0' in told
    assert "engine_daemon_health_checks_total 2.0" in told
    assert "engine_daemon_health_checks_failed_total 1.0" in told
