"""Limits of a worker that reads foreign text; that they hold is in integration."""

import resource
import signal
from typing import Any

import pytest

from husk.builder.store.workers import parse
from husk.builder.store.workers.jobs import ParseJob
from husk.builder.store.workers.parse import TimeIsUp

JOB = ParseJob("x", 64 << 20, 3)


def test_limits_are_beside_what_the_process_has_already(monkeypatch):
    limits: dict[Any, Any] = {}
    monkeypatch.setattr(resource, "setrlimit", lambda which, values: limits.update({which: values}))
    monkeypatch.setattr(signal, "signal", lambda number, handler: limits.update({number: handler}))
    parse._limit(JOB)
    soft, hard = limits[resource.RLIMIT_CPU]
    assert hard > soft >= 3
    assert limits[resource.RLIMIT_AS][0] > JOB.memory
    with pytest.raises(TimeIsUp):
        limits[signal.SIGXCPU]()


def test_what_is_told_of_a_limit():
    assert parse.too_long(JOB) == "it takes more than 3 s of a processor to be read"
    assert parse.too_large(JOB) == "it takes more than 64 MiB of memory to be read"
