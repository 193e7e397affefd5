"""Every metric that is counted as things happen: one registry of our own, none of the library's global ones."""

from collections.abc import Callable
from typing import cast

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics

# Those of dockerd, so that its dashboards and rules fit.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_PULL_BUCKETS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_DELAY_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

ACTIONS = ("changes", "commit", "create", "delete", "start")
BUILD_FAILURES = ("build_canceled", "error_processing_commands_error")


class Families:
    def __init__(self) -> None:
        # A second series for each counter: Prometheus' text format has no use for it.
        cast("Callable[[], None]", disable_created_metrics)()
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.actions = Histogram(
            "engine_daemon_container_actions_seconds",
            "How long actions on containers take",
            ["action"],
            registry=registry,
            buckets=_BUCKETS,
        )
        self.events = Counter("engine_daemon_events", "Events that were published", registry=registry)
        self.health_checks = Counter("engine_daemon_health_checks", "Health checks that were run", registry=registry)
        self.health_checks_failed = Counter(
            "engine_daemon_health_checks_failed", "Health checks that failed", registry=registry
        )
        self.builds = Counter("builder_builds_triggered", "Builds that were begun", registry=registry)
        self.builds_failed = Counter(
            "builder_builds_failed", "Builds that failed, by reason", ["reason"], registry=registry
        )
        self.starts = Histogram(
            "husk_container_start_seconds",
            "How long starts of containers take, those by restart policies and services too",
            ["outcome"],
            registry=registry,
            buckets=_BUCKETS,
        )
        self.pulls = Histogram(
            "husk_image_pull_seconds",
            "How long pulls of images take",
            ["outcome"],
            registry=registry,
            buckets=_PULL_BUCKETS,
        )
        self.loop_delay = Histogram(
            "husk_event_loop_delay_seconds",
            "How late the event loop does what is due, sampled twice a second",
            registry=registry,
            buckets=_DELAY_BUCKETS,
        )
        self.build_steps = Counter(
            "husk_builder_steps", "Steps of builds, by what became of them", ["outcome"], registry=registry
        )
        self.scrapes = Counter("husk_metrics_scrapes", "How often these metrics were asked for", registry=registry)
        for action in ACTIONS:
            self.actions.labels(action)
        for reason in BUILD_FAILURES:
            self.builds_failed.labels(reason)
        for outcome in ("ok", "failed"):
            self.starts.labels(outcome)
            self.pulls.labels(outcome)
        for outcome in ("run", "cached", "failed", "cancelled"):
            self.build_steps.labels(outcome)
