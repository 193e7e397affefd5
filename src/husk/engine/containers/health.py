"""Health checks: a container's own test is run in it again and again, and its results are judged as by dockerd.

    starting   --success-->                  healthy
    starting   --failures beyond retries-->  unhealthy   (those within the start period do not count)
    healthy    --failures beyond retries-->  unhealthy
    unhealthy  --success-->                  healthy
    any        --stopped or paused-->        unhealthy   (nobody tests it any more; dockerd says so too)

The functions are pure; `Prober` is the clock. Nothing of it is stored: a daemon that starts anew begins anew.
"""

import asyncio
import logging
import time

import msgspec

from husk.aio.tasks import Tasks
from husk.engine.containers.exec import Execs
from husk.engine.containers.index import Companion, Instance, Publish
from husk.engine.model.clock import now_ns, parse_rfc3339, rfc3339
from husk.engine.model.container import Health, HealthResult
from husk.engine.model.container_config import ContainerConfig, HealthConfig
from husk.errors import HuskError
from husk.watch import Watch

log = logging.getLogger(__name__)

SECOND = 10**9
INTERVAL = 30 * SECOND
TIMEOUT = 30 * SECOND
START_INTERVAL = 5 * SECOND
RETRIES = 3
# What the API takes at least for a time. An image may name less, or less than nothing: that counts as not named.
SHORTEST = 10**6
KEPT_RESULTS = 5
KEPT_OUTPUT = 4096


def command(config: ContainerConfig) -> list[str] | None:
    """The test to run, None where there is none."""
    match config.healthcheck.test if config.healthcheck else []:
        case ["CMD", _, *_] as test:
            return test[1:]
        case ["CMD-SHELL", _, *_] as test:
            return [*(config.shell or ["/bin/sh", "-c"]), *test[1:]]
        case _:
            return None


def begin(config: ContainerConfig, previous: Health | None) -> Health | None:
    """The health of a container that starts to run; the log of its last run stays."""
    if command(config) is None:
        return None
    return Health(log=previous.log if previous else [])


def stop(health: Health | None) -> Health | None:
    return msgspec.structs.replace(health, status="unhealthy") if health else None


def next_delay(check: HealthConfig, health: Health, running_for: int, took: int = 0) -> int:
    """Nanoseconds until the next test, where the last one took so long: tests are never run without a pause."""
    if health.status == "starting" and running_for < check.start_period:
        wanted = _or_default(check.start_interval, START_INTERVAL)
    else:
        wanted = _or_default(check.interval, INTERVAL)
    return max(wanted, min(took, SECOND))


def timeout_of(check: HealthConfig) -> int:
    """Nanoseconds that a test may take."""
    return _or_default(check.timeout, TIMEOUT)


def _or_default(value: int, default: int) -> int:
    return value if value >= SHORTEST else default


def after(check: HealthConfig, health: Health, result: HealthResult, ran_for: int) -> Health:
    """Return the health after a result; the container had run for `ran_for` nanoseconds when the test began."""
    results = [*health.log, result][-KEPT_RESULTS:]
    if result.exit_code == 0:
        return Health(status="healthy", log=results)
    if health.status == "starting" and ran_for < check.start_period:
        return msgspec.structs.replace(health, log=results)
    streak = health.failing_streak + 1
    status = "unhealthy" if streak >= (check.retries if check.retries > 0 else RETRIES) else health.status
    return Health(status=status, failing_streak=streak, log=results)


def shown_output(output: bytes) -> str:
    text = output[:KEPT_OUTPUT].decode(errors="replace")
    return text + "..." if len(output) > KEPT_OUTPUT else text


def timeout_message(timeout: int, output: str) -> str:
    return f"Health check exceeded timeout ({shown_duration(timeout)})" + (f": {output}" if output else "")


def shown_duration(ns: int) -> str:
    """As Go prints durations: 1.5s, 1m0s, 500ms."""
    if ns < SECOND:
        return f"{ns / 10**6:g}ms"
    minutes, rest = divmod(ns, 60 * SECOND)
    seconds = f"{rest // SECOND}.{rest % SECOND:09d}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + seconds


def _note(instance: Instance, health: Health | None) -> None:
    """Let memory alone tell the health: it is not worth a write, and is in the next one."""
    record = instance.draft.record
    instance.believe(msgspec.structs.replace(record, state=msgspec.structs.replace(record.state, health=health)))


class Prober(Companion):
    """Runs the tests of all containers, each on its own clock."""

    def __init__(self, execs: Execs, publish: Publish, tasks: Tasks, watch: Watch | None = None) -> None:
        self._execs = execs
        self._publish = publish
        self._tasks = tasks
        self._watch = watch or Watch()
        self._probing: dict[str, asyncio.Task[None]] = {}

    def running(self, instance: Instance) -> None:
        self._cease(instance)
        record = instance.record
        if record.state.status == "running" and record.state.health and (test := command(record.config)):
            self._probing[instance.id] = self._tasks.spawn(self._probe(instance, test), f"health {instance.id[:12]}")

    def paused(self, instance: Instance) -> None:
        self._cease(instance)
        _note(instance, stop(instance.record.state.health))

    def ended(self, instance: Instance) -> None:
        self.paused(instance)

    def _cease(self, instance: Instance) -> None:
        if (task := self._probing.pop(instance.id, None)) is not None:
            task.cancel()

    async def _probe(self, instance: Instance, test: list[str]) -> None:
        state = instance.record.state
        check, health = instance.record.config.healthcheck, state.health
        assert check is not None
        started = parse_rfc3339(state.started_at)
        took = 0
        while health is not None:
            await asyncio.sleep(next_delay(check, health, now_ns() - started, took) / SECOND)
            begun, clock = now_ns(), time.monotonic_ns()
            code, output = await self._test(instance, test, timeout_of(check))
            took = time.monotonic_ns() - clock
            self._watch.count("health-check", outcome="failed" if code else "passed")
            result = HealthResult(start=rfc3339(begun), end=rfc3339(now_ns()), exit_code=code, output=output)
            before, health = health.status, after(check, health, result, begun - started)
            async with instance.lock:  # whoever holds it may be writing the record as it was
                _note(instance, health)
            if health.status != before:
                self._publish(instance.record, f"health_status: {health.status}")

    async def _test(self, instance: Instance, test: list[str], timeout: int) -> tuple[int, str]:
        try:
            outcome = await self._execs.run(instance, test, timeout / SECOND, KEPT_OUTPUT)
        except HuskError as error:
            log.warning("the health check of container %s cannot run: %s", instance.id[:12], error.message)
            return -1, error.message
        output = shown_output(outcome.output)
        if outcome.timed_out:
            return -1, timeout_message(timeout, output)
        return outcome.exit_code, output
