import pytest

from husk.dashboard.server import Dashboard
from tests.support.dashboard import WEB, Asker
from tests.support.fake_engine import FakeEngine, failed


@pytest.fixture(autouse=True)
def web(engine: FakeEngine) -> None:
    engine.answers("GET", "/containers/web/json", WEB)


async def test_the_overview_tells_what_it_is(asker: Asker) -> None:
    page = await asker.get("/containers/web")
    assert page.status == 200
    for word in ("healthy", "10.1.1.2", "/data", "&lt;k&gt;", "sh -c &lt;true&gt;", "always", "2 times", "8080→80/tcp"):
        assert word in page.text
    assert "hunter2" not in page.text


async def test_regions_of_a_container(asker: Asker) -> None:
    for page in ("", "/inspect"):
        standing = await asker.get(f"/containers/web{page}", x_region="standing")
        assert "Stop" in standing.text and "<html" not in standing.text
    assert "10.1.1.2" in (await asker.get("/containers/web", x_region="facts")).text


async def test_secrets_are_shown_to_who_asks(asker: Asker) -> None:
    for path in ("environment", "inspect"):
        page = await asker.get(f"/containers/web/{path}")
        assert page.status == 200 and "TOKEN" in page.text and "hunter2" not in page.text
    assert "hunter2" in (await asker.get("/containers/web/environment?show=TOKEN")).text
    assert "hunter2" in (await asker.get("/containers/web/inspect?secrets=show")).text


async def test_a_read_only_dashboard_shows_no_secrets(asker: Asker, dashboard: Dashboard) -> None:
    dashboard.site.read_only = True
    for path in ("environment?show=TOKEN", "environment?show=*", "inspect?secrets=show"):
        page = await asker.get(f"/containers/web/{path}")
        assert page.status == 200 and "TOKEN" in page.text and "hunter2" not in page.text
        assert 'href="?s' not in page.text


async def test_a_read_only_dashboard_shows_no_secrets_of_commands(
    asker: Asker, dashboard: Dashboard, engine: FakeEngine
) -> None:
    dashboard.site.read_only = True
    labels = {**WEB["Config"], "Labels": {"db.password": "hunter2", "app": "shop"}}
    engine.answers("GET", "/containers/web/json", {**WEB, "Args": ["--token", "hunter2"], "Config": labels})
    rows = {"Titles": ["PID", "CMD"], "Processes": [["1", "serve --api-key hunter2"]]}
    engine.answers("GET", f"/containers/{'a' * 64}/top", rows)
    for path, seen in (("", "shop"), ("/inspect", "shop"), ("/processes", "--api-key")):
        page = await asker.get(f"/containers/web{path}")
        assert page.status == 200 and seen in page.text and "hunter2" not in page.text


async def test_processes_of_what_runs(asker: Asker, engine: FakeEngine) -> None:
    engine.answers("GET", f"/containers/{'a' * 64}/top", {"Titles": ["PID", "CMD"], "Processes": [["1", "<sh>"]]})
    assert "&lt;sh&gt;" in (await asker.get("/containers/web/processes")).text
    engine.answers("GET", "/containers/web/json", {**WEB, "State": {**WEB["State"], "Status": "exited"}})
    assert "no processes" in (await asker.get("/containers/web/processes")).text


async def test_stats_and_their_points(asker: Asker) -> None:
    assert (await asker.get("/containers/web/stats")).text.count("data-hour=") == 5
    page = await asker.get("/containers/web/history")
    assert page.headers["content-type"] == "application/json" and b'"cpu":[]' in page.body


async def test_a_container_that_is_not_there_is_said_so(asker: Asker, engine: FakeEngine) -> None:
    engine.answers("GET", "/containers/none/json", failed(404, "No such container: none"))
    for end in ("", "/stats", "/logs", "/inspect", "/environment", "/processes", "/terminal", "/logs/lines"):
        page = await asker.get(f"/containers/none{end}")
        assert page.status == 404 and "No such container: none" in page.text
