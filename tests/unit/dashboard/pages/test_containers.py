from typing import Any

from husk.dashboard.server import Dashboard
from tests.support.dashboard import Asker
from tests.support.fake_engine import FakeEngine


def task(name: str, slot: int, state: str, status: str, created: int) -> dict[str, Any]:
    full = f"{name}.{slot}.{'x' * 25}"
    labels = {"com.docker.swarm.service.name": name, "com.docker.swarm.task.name": full}
    identifier = f"{slot}{created}" * 8
    return {
        "Id": identifier,
        "Names": [f"/{full}"],
        "State": state,
        "Status": status,
        "Labels": labels,
        "Created": created,
    }


async def test_tasks_of_a_service_are_one_group_with_the_newest_failure(asker: Asker, engine: FakeEngine) -> None:
    ended = [task("bad", 1, "exited", "Exited (1) 1 hour ago", created) for created in (1, 2, 3)]
    engine.answers("GET", "/containers/json", [*ended, task("bad", 1, "running", "Up 1 second", 4)])
    text = (await asker.get("/containers")).text
    assert "service, 1 of 2 running" in text and "3 have ended" in text
    assert text.count(">bad.1</a>") == 2 and f'title="bad.1.{"x" * 25}"' in text


async def test_rows_offer_what_can_be_done_in_their_state(
    asker: Asker, engine: FakeEngine, dashboard: Dashboard
) -> None:
    rows = [
        {"Id": "a" * 64, "Names": ["/up"], "State": "running", "Status": "Up 1 hour"},
        {"Id": "b" * 64, "Names": ["/down"], "State": "exited", "Status": "Exited (0) 1 hour ago"},
    ]
    engine.answers("GET", "/containers/json", rows)
    text = (await asker.get("/containers")).text
    for label in ("Log of up", "Shell in up", "Restart up", "More for up", "Log of down", "Start down", "Tick down"):
        assert f'aria-label="{label}"' in text, label
    assert "Shell in down" not in text and "Restart down" not in text
    dashboard.site.read_only = True
    text = (await asker.get("/containers")).text
    assert "Log of up" in text
    for word in ("Shell in", "Restart", "More for", "Tick", "formaction"):
        assert word not in text, word


async def test_parts_of_the_list_are_counted(asker: Asker, engine: FakeEngine) -> None:
    rows = [{"Id": n * 64, "Names": [f"/{n}"], "State": "exited", "Status": f"Exited ({n}) now"} for n in "012"]
    engine.answers("GET", "/containers/json", rows)
    text = (await asker.get("/containers")).text
    assert "In trouble <small>2</small>" in text and "Stopped <small>3</small>" in text
    assert "No container belongs here" in (await asker.get("/containers?show=running")).text


async def test_a_label_that_names_a_project_leads_nowhere_else(asker: Asker, engine: FakeEngine) -> None:
    labels = {"com.docker.compose.project": "x/../../containers/victim?#"}
    engine.answers(
        "GET", "/containers/json", [{"Id": "a" * 64, "Names": ["/evil"], "State": "running", "Labels": labels}]
    )
    text = (await asker.get("/containers")).text
    own = "/projects/x%2F..%2F..%2Fcontainers%2Fvictim%3F%23"
    assert f'formaction="{own}/stop"' in text and f'href="{own}/remove"' in text
    assert (await asker.post(f"{own}/stop")).status in (404, 405)
    assert all(each.method == "GET" for each in engine.asked)
