import base64
import json

import pytest

from husk.api.http.response import Response, fields
from husk.dashboard.server import Dashboard
from tests.support.dashboard import WEB, Asker
from tests.support.fake_engine import FakeEngine
from tests.unit.dashboard.test_listing import archive

ARCHIVE = f"/containers/{'a' * 64}/archive"
STOPPED = {**WEB, "State": {**WEB["State"], "Status": "exited"}}


def named(engine: FakeEngine, mode: int, size: int = 0, target: str = "") -> Response:
    told = {"name": "x", "size": size, "mode": mode, "mtime": "2026-01-31T12:00:00Z", "linkTarget": target}
    header = base64.b64encode(json.dumps(told).encode()).decode()
    return Response(200, b"", fields({"X-Docker-Container-Path-Stat": header}))


@pytest.fixture(autouse=True)
def web(engine: FakeEngine) -> None:
    engine.answers("GET", "/containers/web/json", STOPPED)
    engine.answers("HEAD", ARCHIVE, named(engine, 1 << 31 | 0o755))
    engine.answers("GET", ARCHIVE, archive(("etc", None), ("etc/<i>", b"x")))
    engine.answers("PUT", ARCHIVE, None)


async def test_a_directory_of_what_does_not_run_is_read_out_of_an_archive(asker: Asker) -> None:
    page = await asker.get("/containers/web/files?path=/etc")
    assert page.status == 200 and "&lt;i&gt;" in page.text and "path=/etc/%3Ci%3E" in page.text


async def test_a_link_is_followed(asker: Asker, engine: FakeEngine) -> None:
    engine.answers("HEAD", ARCHIVE, named(engine, 1 << 27 | 0o777, target="../run"), named(engine, 1 << 31 | 0o755))
    await asker.get("/containers/web/files?path=/var/run")
    assert engine.last("GET", ARCHIVE).query["path"] == "/run"


async def test_a_file_is_shown(asker: Asker, engine: FakeEngine) -> None:
    engine.answers("HEAD", ARCHIVE, named(engine, 0o644, 5))
    engine.answers("GET", ARCHIVE, archive(("hello", b"<b>hi")))
    assert "&lt;b&gt;hi" in (await asker.get("/containers/web/files?path=/hello")).text
    page = await asker.get("/containers/web/files/download?path=/hello")
    assert page.body == b"<b>hi" and page.headers["content-disposition"] == "attachment; filename*=UTF-8''hello"


async def test_a_list_that_is_too_long_to_read_is_not_whole(
    asker: Asker, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("husk.dashboard.pages.files._READ", 10)
    assert "not complete" in (await asker.get("/containers/web/files?path=/etc")).text


async def test_an_upload_is_an_archive_of_one_file(asker: Asker, engine: FakeEngine) -> None:
    page = await asker.post(
        "/containers/web/files/upload?path=/etc&file=a", {"x": "y"}, x_csrf_token=asker.browser.csrf
    )
    assert page.status == 303 and page.headers["location"] == "/containers/web/files?path=/etc"
    sent = engine.last("PUT", ARCHIVE)
    assert sent.query == {"path": "/etc"} and len(sent.body) % 512 == 0 and b"x=y" in sent.body


@pytest.mark.parametrize("query", ["path=etc&file=a", "path=/etc&file=", "path=/etc&file=a/b", "file=a"])
async def test_an_upload_needs_a_place_and_a_name(asker: Asker, engine: FakeEngine, query: str) -> None:
    page = await asker.post(f"/containers/web/files/upload?{query}", x_csrf_token=asker.browser.csrf)
    assert page.status == 400
    assert not [each for each in engine.asked if each.method == "PUT"]


async def test_an_upload_has_a_limit_and_a_length(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("husk.dashboard.pages.files._LARGEST_UPLOAD", 10)
    path = "/containers/web/files/upload?path=/etc&file=a"
    assert (await asker.post(path, x_csrf_token=asker.browser.csrf)).status == 413
    assert (await asker.post(path, x_csrf_token="")).status == 403


async def test_a_read_only_dashboard_starts_nothing_and_gives_no_contents(
    asker: Asker, engine: FakeEngine, dashboard: Dashboard
) -> None:
    dashboard.site.read_only = True
    engine.answers("GET", "/containers/web/json", WEB)
    page = await asker.get("/containers/web/files?path=/etc")
    assert page.status == 200 and "&lt;i&gt;" in page.text and "ownload" not in page.text
    assert not [each for each in engine.asked if each.method == "POST"]
    assert (await asker.get("/containers/web/files/download?path=/etc")).status == 403
    engine.answers("HEAD", ARCHIVE, named(engine, 0o644, 5))
    engine.answers("GET", ARCHIVE, archive(("hello", b"hunter2")))
    page = await asker.get("/containers/web/files?path=/hello")
    assert page.status == 200 and "read-only" in page.text and "hunter2" not in page.text
    assert (await asker.get("/containers/web/files/download?path=/hello")).status == 403
