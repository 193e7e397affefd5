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
