from typing import Any

import pytest

from tests.support.dashboard import Asker, Page
from tests.support.fake_engine import FakeEngine, failed

ONE, OTHER = "a" * 64, "b" * 64


@pytest.fixture(autouse=True)
def two(engine: FakeEngine) -> None:
    listed: list[dict[str, Any]] = [
        {"Id": ONE, "Names": ["/one"], "State": "running"}, {"Id": OTHER, "Names": ["/other"], "State": "exited"}
    ]  # fmt: skip
    engine.answers("GET", "/containers/json", listed)


async def ticked(asker: Asker, verb: str, *ids: str, **fields: str) -> Page:
    body = "&".join(
        [f"csrf={asker.browser.csrf}", *(f"id={each}" for each in ids), *(f"{k}={v}" for k, v in fields.items())]
    )
    kind = "application/x-www-form-urlencoded"
    headers = {"origin": asker.browser.origin, "content-type": kind, "accept": "application/json"}
    return await asker.ask("POST", f"/selection/{verb}", body.encode(), headers)


async def test_what_is_ticked_is_stopped(asker: Asker, engine: FakeEngine) -> None:
    for each in (ONE, OTHER):
        engine.answers("POST", f"/containers/{each}/stop", None)
    page = await ticked(asker, "stop", ONE[:12], OTHER[:12], ONE[:12])
    assert b'"message":"2 containers stopped."' in page.body and b'"bad":false' in page.body
    assert sum(each.path.endswith("/stop") for each in engine.asked) == 2


async def test_a_failure_is_told_and_the_others_are_done(asker: Asker, engine: FakeEngine) -> None:
    engine.answers("POST", f"/containers/{ONE}/restart", failed(409, "it is <stuck>"))
    engine.answers("POST", f"/containers/{OTHER}/restart", None)
    page = await ticked(asker, "restart", ONE[:12], OTHER[:12])
    assert b"1 container restarted. one: it is <stuck>" in page.body and b'"bad":true' in page.body


async def test_what_is_not_there_is_not_touched(asker: Asker, engine: FakeEngine) -> None:
    for ids in ((), ("../../x",), ("c" * 12,)):
        page = await ticked(asker, "start", *ids)
        assert page.status == 400 and b"no container is ticked" in page.body
    page = await ticked(asker, "start", *("c" * 12 for _ in range(1001)))
    assert page.status == 400 and b"at most 1000" in page.body
    assert not [each for each in engine.asked if each.method == "POST"]


async def test_removing_asks_first(asker: Asker, engine: FakeEngine) -> None:
    for each in (ONE, OTHER):
        engine.answers("DELETE", f"/containers/{each}", None)
    page = await ticked(asker, "ask-remove", ONE[:12], OTHER[:12])
    assert page.status == 200 and "Remove 2 containers?" in page.text and 'action="/selection/remove"' in page.text
    assert f'name="id" value="{ONE[:12]}"' in page.text
    assert not [each for each in engine.asked if each.method == "DELETE"]
    page = await ticked(asker, "remove", ONE[:12], OTHER[:12], volumes="1")
    assert b"2 containers removed." in page.body
    assert engine.last("DELETE", f"/containers/{ONE}").query == {"force": "1", "v": "1", "link": "0"}
