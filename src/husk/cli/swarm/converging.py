"""Services on their way to what was asked for: told line by line until they are there, or will not get there."""

import asyncio
from collections.abc import Mapping
from typing import Any

from husk.cli.kit.writing import complain, say
from husk.client.client import Client
from husk.client.services import Service

_PAUSE = 0.5
# Looks in a row at which all tasks ran.
_STEADY = 3
_ENDED = {
    "paused": "service update paused",
    "rollback_paused": "service rollback paused",
    "rollback_completed": "service rolled back",
}


async def converge(engine: Client, service: Service, quiet: bool) -> int:
    """Wait until all tasks run, or those of a job have ended well; 1 where the update has failed."""
    told, steady, begun = "", 0, service.attrs.get("UpdateStatus") or {}
    try:
        while True:
            [now] = await engine.services.list(filters={"id": service.id}, status=True)
            update = now.attrs.get("UpdateStatus") or {}
            if (ended := _ENDED.get(str(update.get("State") or ""))) and update != begun:
                complain(f"{ended}: {update.get('Message')}")
                return 0 if update.get("State") == "rollback_completed" and "manual" in str(update) else 1
            line, done = progress(now.attrs)
            if line != told and not quiet:
                say(line)
            told = line
            steady = steady + 1 if done and update.get("State") not in ("updating", "rollback_started") else 0
            if steady >= _STEADY:
                if not quiet:
                    say(f"verify: Service {service.name} converged")
                return 0
            await asyncio.sleep(_PAUSE)
    except (KeyboardInterrupt, asyncio.CancelledError):
        complain(f"Operation continuing in background.\nUse `husk service ps {service.name}` to check progress.")
        raise


def progress(attrs: Mapping[str, Any]) -> tuple[str, bool]:
    """Say how far a service is, and whether that is all of it."""
    status, mode = attrs.get("ServiceStatus") or {}, (attrs.get("Spec") or {}).get("Mode") or {}
    running, wanted = int(status.get("RunningTasks") or 0), int(status.get("DesiredTasks") or 0)
    if "ReplicatedJob" in mode or "GlobalJob" in mode:
        total = int((mode.get("ReplicatedJob") or {}).get("TotalCompletions") or wanted or 1)
        done = int(status.get("CompletedTasks") or 0)
        return f"job progress: {done} out of {total} complete", done >= total
    return f"overall progress: {running} out of {wanted} tasks", running == wanted
