"""Filters of services and tasks."""

from typing import Any

import pytest

from husk.engine.model.filters import Filters
from husk.swarm.spec.matching import service_matches, task_matches
from tests.unit.swarm.manager.test_planner import make_service, make_task


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, True),
        ({"id": ["no"]}, False),
        ({"mode": ["replicated"]}, True),
        ({"mode": ["global", "replicated"]}, True),
        ({"mode": ["global"]}, False),
        ({"runtime": ["plugin"]}, False),
        ({"label": ["tier=web"]}, True),
        ({"label": ["tier=db"]}, False),
    ],
)
def test_services(wanted: dict[str, Any], found: bool) -> None:
    service = make_service(1)
    service.spec.labels = {"tier": "web"}
    assert service_matches(service, Filters(wanted)) is found


def test_services_by_the_beginning_of_their_id_and_name() -> None:
    service = make_service(1)
    assert service_matches(service, Filters({"id": [service.id[:2]], "name": [service.spec.name[:1]]}))


def test_tasks() -> None:
    task = make_task(1)

    def matches(
        wanted: dict[str, Any], services: set[str] | None = None, nodes: frozenset[str] = frozenset(), version: int = 1
    ) -> bool:
        return task_matches(task, Filters(wanted), services, set(nodes), {task.service_id: version})

    assert matches({}) and matches({"desired-state": ["running"]}) and matches({"id": [task.id[:1]]})
    assert not matches({"desired-state": ["shutdown"]})
    assert matches({}, {task.service_id}) and not matches({}, {"other"})
    assert matches({}, nodes=frozenset({task.node_id})) and not matches({}, nodes=frozenset({"elsewhere"}))
    assert matches({"_up-to-date": ["true"]}, version=task.spec_version)
    assert matches({"_up-to-date": ["false"]}, version=task.spec_version + 1)
