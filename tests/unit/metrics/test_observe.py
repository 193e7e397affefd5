"""What requests and actions are counted as."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import generate_latest

from husk.api.observed import Seen
from husk.errors import NotFound
from husk.metrics.families import Families
from husk.metrics.observe import EngineMetrics, RequestMetrics


def seen(method: bytes, route: str, status: int) -> Seen:
    found = Seen(cast("Any", SimpleNamespace(method=method)), route, "x")
    found.status, found.ended = status, found.begun + 0.01
    return found


def text(families: Families) -> str:
    return generate_latest(families.registry).decode()


def test_requests_are_counted_by_route_method_and_status() -> None:
    families = Families()
    metrics = RequestMetrics(families)
    for request in (seen(b"GET", "/containers/{id}/json", 200), seen(b"BREW", "", 404)):
        metrics.begun(request)
        assert "husk_api_requests_in_flight 1.0" in text(families)
        metrics.entered(request)
        metrics.done(request)
    told = text(families)
    assert 'husk_api_request_seconds_count{code="200",method="GET",route="/containers/{id}/json"} 1.0' in told
    assert (
        'husk_api_request_seconds_bucket{code="200",le="0.005",method="GET",route="/containers/{id}/json"} 0.0' in told
    )
    assert 'husk_api_request_seconds_count{code="404",method="other",route="none"} 1.0' in told
    assert "husk_api_requests_in_flight 0.0" in told


def test_changes_and_commits_are_actions_when_they_succeed() -> None:
    families = Families()
    metrics = RequestMetrics(families)
    for request in (seen(b"GET", "/containers/{id}/changes", 200), seen(b"POST", "/commit", 404)):
        metrics.begun(request)
        metrics.done(request)
    assert 'engine_daemon_container_actions_seconds_count{action="changes"} 1.0' in text(families)
    assert 'engine_daemon_container_actions_seconds_count{action="commit"} 0.0' in text(families)


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
