import pytest

from husk.dashboard.server import Dashboard
from tests.support.dashboard import WEB, Asker
from tests.support.fake_engine import FakeEngine, failed
from tests.support.waiting import until_async


@pytest.fixture(autouse=True)
def host(engine: FakeEngine) -> None:
    engine.answers("GET", "/networks", [{"Id": "n", "Name": "inner"}])
    engine.answers("GET", "/images/app/json", {"Id": "sha256:1"})
    engine.answers("POST", "/containers/create", {"Id": "new"})
    engine.answers("POST", "/containers/new/start", None)
    engine.answers("GET", "/containers/new/json", {"Id": "new", "Name": "/web"})
    engine.answers("DELETE", "/containers/new", None)


async def test_a_container_is_made_and_started(asker: Asker, engine: FakeEngine) -> None:
    assert 'name="image"' in (await asker.get("/run")).text
    page = await asker.post("/run", {"image": "app", "name": "web", "ports": "8080:80"})
    assert page.status == 303 and page.headers["location"] == "/containers/web"
    body = engine.last("POST", "/containers/create").document
    assert body["Image"] == "app" and body["HostConfig"]["PortBindings"]["80/tcp"][0]["HostPort"] == "8080"


async def test_what_is_wrong_makes_nothing(asker: Asker, engine: FakeEngine) -> None:
    page = await asker.post("/run", {"image": "app", "ports": "x"})
    assert page.status == 400 and "ports: &#39;x&#39; is none" in page.text
    assert not [each for each in engine.asked if each.path == "/containers/create"]


async def test_what_cannot_be_started_is_removed(asker: Asker, engine: FakeEngine) -> None:
    engine.answers("POST", "/containers/new/start", failed(409, "port is already allocated"))
    page = await asker.post("/run", {"image": "app"})
    assert page.status == 409 and "port is already allocated" in page.text
    assert engine.last("DELETE", "/containers/new")


async def test_an_image_that_is_not_here_is_pulled_first(asker: Asker, engine: FakeEngine) -> None:
    engine.answers("GET", "/images/other/json", failed(404, "no such image"))
    engine.answers("POST", "/images/create", b'{"status":"Status: Downloaded"}\n')
    page = await asker.post("/run", {"image": "other"})
    transfer = page.headers["location"]
    assert page.status == 303 and transfer.startswith("/images/transfers/")
    await until_async(lambda: [each for each in engine.asked if each.path == "/containers/new/start"], "the start")
    text = ""
    while "was started" not in text:
        text = (await asker.get(transfer)).text


async def test_the_preview_shows_the_same_as_commands_and_escapes_them(asker: Asker) -> None:
    page = await asker.post("/run/preview", {"image": "<b>", "name": "web"}, x_region="preview")
    assert (
        "docker run -d" in page.text
        and "&lt;b&gt;" in page.text
        and "<b>" not in page.text
        and "services:" in page.text
    )
    page = await asker.post("/run/preview", {"image": "app", "cpus": "x"})
    assert page.status == 200 and "processors: &#39;x&#39;" in page.text and 'value="app"' in page.text


async def test_a_copy_begins_with_what_is_there(asker: Asker, engine: FakeEngine) -> None:
    engine.answers("GET", "/containers/web/json", {**WEB, "HostConfig": {"CapAdd": ["NET_ADMIN"], "Memory": 4096}})
    text = (await asker.get("/run?from=web")).text
    assert 'value="web-copy"' in text and "no field for: CapAdd" in text and 'value="4096"' in text


async def test_nothing_is_run_where_nothing_can_be_changed(asker: Asker, dashboard: Dashboard) -> None:
    dashboard.site.read_only = True
    for answer in (
        await asker.get("/run"),
        await asker.post("/run", {"image": "app"}),
        await asker.get("/run?from=web"),
    ):
        assert answer.status == 403


async def test_limits_are_changed_and_what_is_empty_stays(asker: Asker, engine: FakeEngine) -> None:
    engine.answers("GET", "/containers/web/json", WEB)
    engine.answers("POST", f"/containers/{'a' * 64}/update", {"Warnings": None})
    assert 'name="memory"' in (await asker.get("/containers/web/limits")).text
    page = await asker.post("/containers/web/limits", {"memory": "64m", "restart": "always"})
    assert page.status == 303
    asked = engine.last("POST", f"/containers/{'a' * 64}/update").document
    assert asked == {"Memory": 64 << 20, "MemorySwap": 128 << 20, "RestartPolicy": {"Name": "always"}}
    assert (await asker.post("/containers/web/limits", {"cpus": "many", "restart": "no"})).status == 400
