from typing import Any

import pytest

from tests.support.fake_engine import FakeEngine, failed
from tests.unit.dashboard.pages.conftest import Visitor

PROJECT = "com.docker.compose.project"


def container(name: str, state: str, needs: str = "") -> dict[str, Any]:
    labels = {PROJECT: "shop", "com.docker.compose.service": name, "com.docker.compose.depends_on": needs}
    return {"Id": name, "Names": [f"/shop-{name}-1"], "State": state, "Labels": labels, "Image": "busybox"}


@pytest.fixture
def shop(engine: FakeEngine) -> FakeEngine:
    listed = [
        container("web", "running", "db:service_started:false"),
        container("db", "running"),
        container("job", "exited"),
    ]
    engine.answers("GET", "/containers/json", listed)
    for name in ("web", "db", "job"):
        for verb in ("start", "stop", "restart"):
            engine.answers("POST", f"/containers/{name}/{verb}", None)
        engine.answers("DELETE", f"/containers/{name}", None)
    network = {"Id": "n", "Name": "shop_default", "Labels": {PROJECT: "shop"}}
    engine.answers("GET", "/networks", [network])
    engine.answers("DELETE", "/networks/n", None)
    engine.answers("GET", "/volumes", {"Volumes": [{"Name": "shop_data"}]})
    engine.answers("DELETE", "/volumes/shop_data", None)
    return engine


def changes(engine: FakeEngine) -> list[tuple[str, str]]:
    return [(each.method, each.path) for each in engine.asked if each.method != "GET"]


async def test_a_project_is_stopped_from_its_end_to_its_beginning(shop: FakeEngine, visitor: Visitor) -> None:
    assert (await visitor.post("/projects/shop/stop")).status == 303
    assert changes(shop) == [("POST", "/containers/web/stop"), ("POST", "/containers/db/stop")]
    assert "shop: 2 containers stopped." in (await visitor.get("/containers")).text


async def test_what_does_not_run_is_started_and_all_is_restarted_in_order(shop: FakeEngine, visitor: Visitor) -> None:
    await visitor.post("/projects/shop/start")
    assert changes(shop) == [("POST", "/containers/job/start")]
    await visitor.post("/projects/shop/restart")
    assert changes(shop)[-1] == ("POST", "/containers/web/restart") and len(changes(shop)) == 4


async def test_what_must_be_healthy_is_waited_for(shop: FakeEngine, visitor: Visitor) -> None:
    needs = "db:service_healthy:false,job:service_completed_successfully:false"
    listed = [container("web", "exited", needs), container("db", "exited"), container("job", "exited")]
    shop.answers("GET", "/containers/json", listed)
    alive = {"Status": "running", "Running": True}
    states = [{**alive, "Health": {"Status": status}} for status in ("starting", "starting", "healthy")]
    shop.answers("GET", "/containers/db/json", *({"Id": "db", "State": state} for state in states))
    ended = {"Running": False, "Status": "exited", "ExitCode": 0}
    shop.answers("GET", "/containers/job/json", {"Id": "job", "State": alive}, {"Id": "job", "State": ended})
    assert (await visitor.post("/projects/shop/start")).status == 303
    assert sorted(changes(shop)[:2]) == [("POST", "/containers/db/start"), ("POST", "/containers/job/start")]
    assert changes(shop)[2:] == [("POST", "/containers/web/start")]
    asked = [each.path for each in shop.asked]
    assert asked.count("/containers/db/json") == 3 and asked.count("/containers/job/json") == 2


async def test_what_needs_something_unhealthy_is_not_started(shop: FakeEngine, visitor: Visitor) -> None:
    listed = [container("web", "exited", "db:service_healthy:false"), container("db", "running")]
    shop.answers("GET", "/containers/json", listed)
    state = {"Running": True, "Health": {"Status": "unhealthy"}}
    shop.answers("GET", "/containers/db/json", {"Id": "db", "State": state})
    page = await visitor.post("/projects/shop/start")
    assert page.status == 409 and "shop-web-1: it needs shop-db-1, which is unhealthy" in page.text
    assert changes(shop) == []


@pytest.mark.parametrize("volumes", [False, True])
async def test_a_project_is_removed_after_a_question(shop: FakeEngine, visitor: Visitor, volumes: bool) -> None:
    asked = (await visitor.get("/projects/shop/remove")).text
    assert "shop-db-1, shop-job-1, shop-web-1" in asked and "shop_data" in asked and changes(shop) == []
    assert (await visitor.post("/projects/shop/remove", **({"volumes": "1"} if volumes else {}))).status == 303
    gone = {path for method, path in changes(shop) if method == "DELETE"}
    assert gone == {"/containers/web", "/containers/db", "/containers/job", "/networks/n"} | (
        {"/volumes/shop_data"} if volumes else set()
    )


async def test_a_failure_names_its_container(shop: FakeEngine, visitor: Visitor) -> None:
    shop.answers("POST", "/containers/db/stop", failed(409, "it cannot be stopped"))
    page = await visitor.post("/projects/shop/stop")
    assert page.status == 409 and "shop-db-1: it cannot be stopped" in page.text


async def test_a_project_that_is_not_there(engine: FakeEngine, visitor: Visitor) -> None:
    assert (await visitor.post("/projects/none/stop")).status == 404
