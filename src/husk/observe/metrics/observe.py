"""Counts of what the engine does, made of what `husk.watch` tells."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from husk.observe.metrics.families import Families


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
