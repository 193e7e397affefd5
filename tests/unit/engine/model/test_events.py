"""Events: history, live streams with an end, and dockerd's filters."""

import gc
from collections.abc import AsyncIterator

import pytest

from husk.engine.model.events import BACKLOG, HISTORY, Event, Events, matches
from husk.engine.model.filters import Filters

NONE = Filters()


class Clock:
    """One nanosecond per look."""

    now = 0

    def __call__(self) -> int:
        self.now += 1
        return self.now


def publish(events: Events, *actions: str) -> None:
    for action in actions:
        events.publish("container", action, "id", {})


async def actions(stream: AsyncIterator[Event]) -> list[str]:
    return [event.action async for event in stream]


async def test_without_a_time_only_what_comes_is_told() -> None:
    events = Events()
    publish(events, "past")
    stream = events.subscribe(None, None, NONE)
    publish(events, "live")
    assert (await anext(stream)).action == "live"


async def test_listening_begins_with_the_call_not_with_the_first_read() -> None:
    events = Events()
    stream = events.subscribe(None, None, NONE)
    publish(events, "a", "b")
    assert [(await anext(stream)).action for _ in "ab"] == ["a", "b"]


async def test_since_brings_the_past_and_until_in_the_past_ends_the_stream() -> None:
    clock = Clock()
    events = Events(clock)
    publish(events, "one", "two", "three", "four")
    assert await actions(events.subscribe(2, 3, NONE)) == ["two", "three"]


async def test_until_alone_brings_all_of_the_past() -> None:
    clock = Clock()
    events = Events(clock)
    publish(events, "one", "two", "three")
    assert await actions(events.subscribe(None, 2, NONE)) == ["one", "two"]


async def test_what_happened_in_time_is_told_however_late_it_is_read() -> None:
    clock = Clock()
    events = Events(clock)
    stream = events.subscribe(None, 2, NONE)
    publish(events, "one", "two", "late")
    clock.now = 1000
    assert await actions(stream) == ["one", "two"]


async def test_the_history_forgets_the_oldest() -> None:
    events = Events()
    publish(events, *map(str, range(HISTORY + 2)))
    stream = events.subscribe(0, None, NONE)
    assert (await anext(stream)).action == "2"


async def test_the_history_forgets_sooner_where_events_are_large() -> None:
    events = Events(largest_history=99)
    labels = {"label": "v" * 40}
    for action in "abcd":
        events.publish("image", action, "id", {"name": "n"}, labels)
    assert (await anext(events.subscribe(0, None, NONE))).action == "d"
    publish(events, "small")
    assert (await anext(events.subscribe(0, None, NONE))).action == "d"
    events.publish("image", "huge", "id", {}, {"label": "v" * 1000})
    assert (await anext(events.subscribe(0, None, NONE))).action == "huge"


async def test_labels_stand_behind_attributes_and_are_shared() -> None:
    events = Events()
    labels = {"team": "red", "name": "of a label"}
    events.publish("image", "tag", "id", {"name": "app:1"}, labels)
    event = await anext(events.subscribe(0, None, Filters({"label": ["team=red"]})))
    assert dict(event.attributes) == {"team": "red", "name": "app:1"}
    labels["team"] = "blue"  # they are those of the record, and not a copy for each event
    assert event.attributes["team"] == "blue"


async def test_filters_hold_for_past_and_live_events() -> None:
    events = Events()
    publish(events, "start", "die")
    stream = events.subscribe(0, None, Filters({"event": ["die"]}))
    publish(events, "start", "die")
    events.close()
    assert await actions(events.subscribe(0, 0, NONE)) == []
    assert (await anext(stream)).action == "die"


async def test_a_listener_that_does_not_read_sees_its_stream_end() -> None:
    events = Events()
    stream = events.subscribe(None, None, NONE)
    publish(events, *map(str, range(BACKLOG + 1)))
    assert events.listeners == 0
    assert await actions(stream) == [str(number) for number in range(1, BACKLOG)]


async def test_closing_ends_every_stream() -> None:
    events = Events()
    streams = [events.subscribe(None, None, NONE) for _ in range(3)]
    publish(events, "a")
    events.close()
    assert [await actions(stream) for stream in streams] == [[], [], []]
    assert events.listeners == 0


async def test_a_stream_that_nobody_reads_is_forgotten() -> None:
    events = Events()
    stream = events.subscribe(None, None, NONE)
    assert events.listeners == 1
    del stream
    gc.collect()
    assert events.listeners == 0


CONTAINER = Event(
    type="container",
    action="exec_create: ls",
    actor_id="0123456789ab",
    attributes={"name": "web", "image": "busybox:1", "a": "1"},
    time_ns=0,
)
PULL = Event(type="image", action="pull", actor_id="busybox:1", attributes={"name": "busybox"}, time_ns=0)
NETWORK = Event(type="network", action="connect", actor_id="abc", attributes={"name": "bridge"}, time_ns=0)


@pytest.mark.parametrize(
    ("event", "fields", "taken"),
    [
        (CONTAINER, {}, True),
        (CONTAINER, {"type": ["container"]}, True),
        (CONTAINER, {"type": ["image", "container"]}, True),
        (CONTAINER, {"type": ["image"]}, False),
        (CONTAINER, {"scope": ["local"]}, True),
        (CONTAINER, {"scope": ["swarm"]}, False),
        (CONTAINER, {"event": ["exec_create"]}, True),
        (CONTAINER, {"event": ["exec_create: ls"]}, True),
        (CONTAINER, {"event": ["exec"]}, False),
        (CONTAINER, {"container": ["web"]}, True),
        (CONTAINER, {"container": ["we"]}, True),
        (CONTAINER, {"container": ["012"]}, True),
        (CONTAINER, {"container": ["eb", "123"]}, False),
        (CONTAINER, {"image": ["busybox"]}, True),
        (CONTAINER, {"image": ["busybox:1"]}, True),
        (CONTAINER, {"image": ["busy"]}, False),
        (CONTAINER, {"label": ["a=1"]}, True),
        (CONTAINER, {"label": ["a=1", "b"]}, False),
        (CONTAINER, {"container": ["web"], "event": ["die"]}, False),
        (CONTAINER, {"network": ["bridge"]}, False),
        (PULL, {"image": ["busybox"]}, True),
        (PULL, {"image": ["alpine", "busybox:1"]}, True),
        (PULL, {"image": ["alpine"]}, False),
        (PULL, {"container": ["busybox"]}, False),
        (NETWORK, {"network": ["bri"]}, True),
        (NETWORK, {"image": ["bridge"]}, False),
    ],
)
def test_a_filter_takes_what_dockerd_takes(event: Event, fields: dict[str, list[str]], taken: bool) -> None:
    assert matches(event, Filters(fields)) is taken
