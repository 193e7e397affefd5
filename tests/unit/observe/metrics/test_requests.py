"""Counts of requests."""

from prometheus_client import generate_latest

from husk.observe.metrics.families import Families
from husk.observe.metrics.requests import RequestCounts


def text(families: Families) -> str:
    return generate_latest(families.registry).decode()


def test_requests_are_counted_by_route_method_and_status() -> None:
    families = Families()
    counts = RequestCounts(families)
    route = 'method="GET",route="/containers/{id}/json"'
    for seconds in (0.01, 0.005, 99.0):
        counts.add(b"GET", "/containers/{id}/json", 200, seconds)
    counts.add(b"BREW", "", 404, 0.0)
    counts.add(b"PROPFIND", "", 404, 0.0)
    told = text(families)
    for bound, count in (("0.001", 0), ("0.005", 1), ("0.025", 2), ("10.0", 2), ("+Inf", 3)):
        assert f'husk_api_request_seconds_bucket{{code="200",le="{bound}",{route}}} {count}.0' in told
    assert f'husk_api_request_seconds_count{{code="200",{route}}} 3.0' in told
    assert f'husk_api_request_seconds_sum{{code="200",{route}}} 99.015' in told
    assert 'husk_api_request_seconds_count{code="404",method="other",route="none"} 2.0' in told
    assert "# TYPE husk_api_request_seconds histogram" in told


def test_requests_that_wait_are_in_flight() -> None:
    families = Families()
    counts = RequestCounts(families)
    assert "husk_api_requests_in_flight 0.0" in text(families)
    counts.in_flight += 1
    assert "husk_api_requests_in_flight 1.0" in text(families)


def test_changes_and_commits_are_actions_when_they_succeed() -> None:
    families = Families()
    counts = RequestCounts(families)
    counts.add(b"GET", "/containers/{id}/changes", 200, 0.1)
    counts.add(b"POST", "/commit", 404, 0.1)
    assert 'engine_daemon_container_actions_seconds_count{action="changes"} 1.0' in text(families)
    assert 'engine_daemon_container_actions_seconds_count{action="commit"} 0.0' in text(families)
