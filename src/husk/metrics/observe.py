"""Requests and actions become counts: what `husk.api.observed` and `husk.watch` tell."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Histogram

from husk.api.observed import Seen
from husk.metrics.families import Families

# Others are what somebody made up.
_METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS"})
# Actions of dockerd that are operations of the API, and nothing else.
_BY_ROUTE = {"/containers/{id}/changes": "changes", "/commit": "commit"}


class RequestMetrics:
    """Counts requests by the pattern of their route, never by their path."""

    def __init__(self, families: Families) -> None:
        self._families = families
        # To find one by its labels costs as much as all else here.
        self._requests: dict[tuple[str, str, int], Histogram] = {}

    def begun(self, seen: Seen) -> None:
        self._families.in_flight.inc()

    def entered(self, seen: Seen) -> None:
        pass

    def done(self, seen: Seen) -> None:
        families = self._families
        families.in_flight.dec()
        method = seen.request.method
        name = method.decode() if method in _METHODS else "other"
        key = (name, seen.route, seen.status)
        if (requests := self._requests.get(key)) is None:
            requests = self._requests[key] = families.requests.labels(name, seen.route or "none", str(seen.status))
        requests.observe(seen.seconds)
        if (action := _BY_ROUTE.get(seen.route)) is not None and seen.status < 400:
            families.actions.labels(action).observe(seen.seconds)


class EngineMetrics:
    """Counts what the engine does, whoever asked for it."""

    def __init__(self, families: Families) -> None:
        self._families = families

    @contextmanager
    def action(self, name: str, facts: dict[str, str]) -> Iterator[None]:
        begun = time.perf_counter()
        if name == "build":
            self._families.builds.inc()
        try:
            yield
        except BaseException as error:
            self._ended(name, time.perf_counter() - begun, error)
            raise
        self._ended(name, time.perf_counter() - begun, None)

    def _ended(self, name: str, seconds: float, error: BaseException | None) -> None:
        families, outcome = self._families, "ok" if error is None else "failed"
        if name == "start":
            families.starts.labels(outcome).observe(seconds)
        elif name == "pull":
            families.pulls.labels(outcome).observe(seconds)
        elif name == "build" and error is not None:
            cancelled = isinstance(error, asyncio.CancelledError)
            families.builds_failed.labels("build_canceled" if cancelled else "error_processing_commands_error").inc()
        if name in ("start", "create", "delete") and error is None:
            families.actions.labels(name).observe(seconds)

    def count(self, name: str, facts: dict[str, str]) -> None:
        if name == "build-step":
            self._families.build_steps.labels(facts["outcome"]).inc()
        elif name == "health-check":
            self._families.health_checks.inc()
            if facts["outcome"] == "failed":
                self._families.health_checks_failed.inc()
