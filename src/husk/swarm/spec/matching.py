"""Filters of a client: their names for each kind of thing, and which services and tasks they let through. Pure."""

from collections.abc import Callable

from husk.engine.model.filters import Filters
from husk.swarm.model.services import Service, Task
from husk.swarm.spec.declared import mode_of

NODE_FILTERS = ("id", "label", "membership", "name", "node.label", "role")
CONFIG_FILTERS = ("id", "label", "name")
SECRET_FILTERS = (*CONFIG_FILTERS, "names")
SERVICE_FILTERS = ("id", "label", "mode", "name", "runtime")
TASK_FILTERS = ("desired-state", "id", "label", "name", "node", "service", "_up-to-date", "runtime")


def service_matches(service: Service, filters: Filters) -> bool:
    tests: dict[str, Callable[[str], bool]] = {
        "id": service.id.startswith,
        "name": service.spec.name.startswith,
        "mode": lambda value: value == mode_of(service.spec.mode),
        "runtime": lambda value: value == "container",
    }
    return filters.matches_labels(service.spec.labels) and all(
        any(test(value) for value in filters.get(key)) for key, test in tests.items() if filters.get(key)
    )


def task_matches(
    task: Task, filters: Filters, services: set[str] | None, nodes: set[str], versions: dict[str, int]
) -> bool:
    tests: dict[str, Callable[[str], bool]] = {
        "id": task.id.startswith,
        "name": lambda value: task.name.startswith(value),
        "desired-state": lambda value: value.lower() in ("", task.shown_desired_state),
        "_up-to-date": lambda value: (value == "true") == (versions.get(task.service_id) == task.spec_version),
    }
    labels = task.spec.container_spec.labels if task.spec.container_spec else {}
    return (
        (services is None or task.service_id in services)
        and (not nodes or task.node_id in nodes)
        and filters.matches_labels(labels)
        and all(any(test(value) for value in filters.get(key)) for key, test in tests.items() if filters.get(key))
    )
