import pytest

from husk.dashboard.server import Dashboard
from tests.support.dashboard import Asker
from tests.support.fake_engine import FakeEngine, failed


@pytest.fixture(autouse=True)
def host(engine: FakeEngine) -> None:
    space = [["Data Space Total", "500.0 GB"], ["Data Space Available", "20.5 GB"]]
    engine.answers("GET", "/info", {"Name": "box", "NCPU": 4, "MemTotal": 8_000_000_000, "DriverStatus": space})
    engine.answers("GET", "/system/df", {"LayersSize": 1000, "Images": [{"Id": "sha256:1", "Size": 1000}]})
    engine.answers("GET", "/events", b"")


async def test_an_empty_engine_is_well(asker: Asker) -> None:
    page = await asker.get("/")
    assert page.status == 200
    for words in ("All is well", "box", "of 400 %", "of 8.0 GB", "of 500.0 GB, 20.5 GB are free", "no containers"):
        assert words in page.text, words


async def test_what_needs_somebody_stands_first_with_its_reason(asker: Asker, engine: FakeEngine) -> None:
    labels = {"com.docker.compose.project": "shop"}
    web = {"Id": "a" * 64, "Names": ["/shop-web-1"], "State": "exited", "Status": "Exited (127) 1 hour ago",
           "Labels": labels}  # fmt: skip
    engine.answers("GET", "/containers/json", [web])
    state = {"Status": "exited", "ExitCode": 127}
    engine.answers("GET", f"/containers/{'a' * 64}/json", {"Id": "a" * 64, "State": state, "Config": {"Cmd": ["<x>"]}})
    text = (await asker.get("/")).text
    assert "1 thing needs you" in text and "status 127: &lt;x&gt;, or a command in it, is not there" in text
    assert 'href="/containers/shop-web-1"' in text and 'href="/containers#project-shop"' in text
    assert "1 thing needs you" in (await asker.get("/", x_region="needs")).text


async def test_reasons_tell_no_secrets_where_nothing_can_be_changed(
    asker: Asker, dashboard: Dashboard, engine: FakeEngine
) -> None:
    web = {"Id": "a" * 64, "Names": ["/web"], "State": "running", "Status": "Up 1 hour (unhealthy)"}
    engine.answers("GET", "/containers/json", [web])
    engine.answers("GET", "/images/sha256:1/json", {"Id": "sha256:1"})
    health = {"Status": "unhealthy", "FailingStreak": 3, "Log": [{"Output": "refused: TOKEN=hunter2"}]}
    state = {"Status": "running", "Health": health}
    inspected = {"Id": "a" * 64, "Image": "sha256:1", "Config": {}}
    engine.answers("GET", f"/containers/{'a' * 64}/json", {**inspected, "State": state})
    assert "TOKEN=hunter2" in (await asker.get("/")).text
    dashboard.site.read_only = True
    page = await asker.get("/")
    assert "refused: TOKEN=" in page.text and "hunter2" not in page.text


async def test_a_disk_that_cannot_be_counted_does_not_hide_the_rest(asker: Asker, engine: FakeEngine) -> None:
    engine.answers("GET", "/system/df", failed(500, "the disk is away"))
    assert "All is well" in (await asker.get("/")).text


async def test_charts_of_all_containers(asker: Asker) -> None:
    page = await asker.get("/history")
    assert page.status == 200 and b'"series"' in page.body


async def test_colours_are_chosen_by_a_button_also_where_nothing_can_be_changed(
    asker: Asker, dashboard: Dashboard
) -> None:
    dashboard.site.read_only = True
    assert "data-theme" not in (await asker.get("/")).text
    assert (await asker.post("/theme", {"theme": "dark", "next": "/images"})).headers["location"] == "/images"
    assert 'data-theme="dark"' in (await asker.get("/")).text
    assert (await asker.post("/theme", {"theme": "<pink>"})).status == 400
    await asker.post("/theme", {"theme": "system"})
    assert "data-theme" not in (await asker.get("/")).text
