"""Watchers hear of every action and count; without any nothing happens."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from husk.watch import Serving, Watch, request_id, serving


class Recorder:
    def __init__(self) -> None:
        self.heard: list[str] = []

    @contextmanager
    def action(self, name: str, facts: dict[str, str]) -> Iterator[None]:
        self.heard.append(f"{name} {facts} begins")
        try:
            yield
        except ValueError:
            self.heard.append(f"{name} fails")
            raise
        self.heard.append(f"{name} ends")

    def count(self, name: str, facts: dict[str, str]) -> None:
        self.heard.append(f"{name} {facts}")


def test_without_anybody_nothing_happens() -> None:
    watch = Watch()
    with watch.action("start", container="x"):
        watch.count("step")


def test_everybody_hears_of_actions_and_counts() -> None:
    watch, one, other = Watch(), Recorder(), Recorder()
    watch.watchers = (one, other)
    with watch.action("start", container="x"):
        watch.count("step", outcome="run")
    assert one.heard == ["start {'container': 'x'} begins", "step {'outcome': 'run'}", "start ends"]
    assert other.heard == one.heard


def test_a_failure_is_heard_and_goes_on() -> None:
    watch, one = Watch(), Recorder()
    watch.watchers = (one,)
    with pytest.raises(ValueError), watch.action("pull"):
        raise ValueError
    assert one.heard == ["pull {} begins", "pull fails"]


async def test_the_id_of_a_request_counts_until_it_is_answered() -> None:
    assert request_id() == ""
    mine = Serving("mine")
    token = serving.set(mine)
    try:
        assert request_id() == await asyncio.to_thread(request_id) == "mine"
        mine.over = True
        assert request_id() == ""
    finally:
        serving.reset(token)
