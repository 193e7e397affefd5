import json
import time

import pytest

from husk.client.events import event as husk_event
from husk.dashboard.server import Dashboard
from tests.support.fake_engine import FakeEngine, failed
from tests.unit.dashboard.pages.conftest import Visitor


async def test_disk_use_is_drawn_and_told(engine: FakeEngine, visitor: Visitor) -> None:
    engine.answers(
        "GET", "/system/df", {"LayersSize": 3000, "Images": [{"Id": "x", "RepoTags": ["app:1"], "Size": 3000}]}
    )
    text = (await visitor.get("/disk")).text
    assert '<rect class="series series-1" x="0.0" y="0" width="1000.0"' in text and "app:1" in text


async def test_disk_use_that_is_not_counted_yet_is_told_so(
    visitor: Visitor, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look() -> tuple[None, bool]:
        return None, True

    monkeypatch.setattr(dashboard.site.room, "look", look)
    page = await visitor.get("/disk")
    assert page.status == 200 and "The sizes are being counted." in page.text and 'class="disk"' not in page.text


async def test_disk_use_that_cannot_be_counted_is_told_so(engine: FakeEngine, visitor: Visitor) -> None:
    engine.answers("GET", "/system/df", failed(500, "the disk is away"))
    page = await visitor.get("/disk")
    assert "The sizes cannot be counted: the disk is away." in page.text and 'class="disk"' not in page.text


async def test_events_are_a_time_line_with_the_newest_first(engine: FakeEngine, visitor: Visitor) -> None:
    def event(action: str, second: int) -> bytes:
        actor = {"ID": "c" * 64, "Attributes": {"name": "web", "exitCode": "3"}}
        return json.dumps({"Type": "container", "Action": action, "Actor": actor, "time": second}).encode() + b"\n"

    engine.answers("GET", "/events", event("start", 1) + event("die", 2))
    text = (await visitor.get("/events?type=container")).text
    assert text.index("die") < text.index("<strong>start") and "exit code 3" in text
    asked = engine.last("GET", "/events").query
    assert json.loads(asked["filters"]) == {"type": ["container"]} and "until" in asked
    assert 'event event-good"' in text and 'event event-bad"' in text
    await visitor.get("/events?type=%3Cscript%3E")
    assert "filters" not in engine.last("GET", "/events").query


async def test_the_engine_tells_its_warnings(engine: FakeEngine, visitor: Visitor) -> None:
    engine.answers("GET", "/version", {"Version": "1", "Components": [{"Name": "crun", "Version": "1.8"}]})
    engine.answers("GET", "/info", {"Name": "here", "Warnings": ["no swap limit"]}, {"Name": "here"})
    text = (await visitor.get("/health")).text
    assert "no swap limit" in text and "crun" in text
    assert "It has no warnings." in (await visitor.get("/health")).text


async def test_events_that_change_nothing_are_told_to_who_asks(
    engine: FakeEngine, visitor: Visitor, dashboard: Dashboard
) -> None:
    def event(action: str, nano: int) -> dict[str, object]:
        actor = {"ID": "c1", "Attributes": {"name": "web"}}
        return {"Type": "container", "Action": action, "Actor": actor, "time": nano // 10**9, "timeNano": nano}

    now = time.time_ns()
    told = json.dumps(event("exec_create: true", now)).encode()
    engine.answers("GET", "/events", told)
    # The engine has forgotten this one, who looked has not.
    dashboard.site.live.recent.append(husk_event(event("rename", now)))
    text = (await visitor.get("/events")).text
    assert "exec_create" not in text and "rename" in text
    assert "exec_create: true" in (await visitor.get("/events?execs=show")).text
    assert "rename" not in (await visitor.get("/events?type=image")).text


async def test_a_read_only_dashboard_shows_no_secrets_of_execs(
    engine: FakeEngine, visitor: Visitor, dashboard: Dashboard
) -> None:
    actor = {"ID": "c" * 64, "Attributes": {"name": "web"}}
    action = {"Type": "container", "Action": "exec_start: login --password hunter2", "Actor": actor, "time": 1}
    engine.answers("GET", "/events", json.dumps(action).encode() + b"\n")
    dashboard.site.read_only = True
    text = (await visitor.get("/events?execs=show")).text
    assert "login --password" in text and "hunter2" not in text
