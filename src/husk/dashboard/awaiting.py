"""Wait until what a service of a Compose project depends on is ready, as `docker compose` does before it starts one."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from husk.client.client import Client
from husk.client.container import Container
from husk.dashboard.drawing import name_of
from husk.dashboard.grouping import needed_by, service_of
from husk.errors import Conflict, Unavailable

# Seconds: until it is given up, and between two questions.
PATIENCE = 120.0
_OFTEN = 0.2


async def until_ready(
    engine: Client, container: Container, others: Iterable[Container], patience: float = PATIENCE
) -> None:
    """Until all that `container` depends on among the `others` is as it must be. Conflict where it will never be,
    Unavailable where it takes longer than `patience` seconds."""
    needs = needed_by(container.attrs)
    deadline = time.monotonic() + patience
    for other in others:
        look = _LOOKS.get(needs.get(service_of(other.attrs), ""))
        while look is not None:
            found = await engine.containers.get(other.id)
            problem = look(found.attrs.get("State") or {})
            if problem == "":
                break
            if problem is not None:
                raise Conflict(f"it needs {name_of(other.attrs)}, which {problem}")
            if time.monotonic() > deadline:
                raise Unavailable(f"it needs {name_of(other.attrs)}, which is not ready after {patience:g} seconds")
            await asyncio.sleep(_OFTEN)


def _healthy(state: dict[str, Any]) -> str | None:
    """Say why the container will not be healthy; empty where it is healthy, None where it may become so."""
    health = (state.get("Health") or {}).get("Status", "none")
    if not state.get("Running"):
        return "does not run"
    known = {"healthy": "", "unhealthy": "is unhealthy", "none": "has no health check"}
    return known.get(health)


def _completed(state: dict[str, Any]) -> str | None:
    if state.get("Running") or state.get("Status") == "created":
        return None
    code = state.get("ExitCode")
    return f"has ended with status {code}" if code else ""


_LOOKS = {"service_healthy": _healthy, "service_completed_successfully": _completed}
