import pytest

from husk.client.client import Client
from husk.dashboard.finding import MOST, Hit, SearchIndex, ranked
from husk.dashboard.guard import Guard, guarded
from husk.dashboard.site import Site
from tests.support.dashboard import Asker
from tests.support.fake_engine import FakeEngine


def hit(name: str, more: str = "") -> Hit:
    return Hit("container", name, f"/containers/{name}", "", f"container {name} {more}".lower())


def test_the_best_match_comes_first() -> None:
    found = ranked([hit("x", "web"), hit("my-web"), hit("web-2"), hit("Web"), hit("db")], ["web"])
    assert [each.name for each in found] == ["Web", "web-2", "my-web", "x"]


def test_every_word_must_be_there() -> None:
    assert [each.name for each in ranked([hit("a", "8080 shop"), hit("b", "8080")], ["shop", "8080"])] == ["a"]


def test_what_is_found_has_an_end() -> None:
    assert len(ranked([hit(f"web{n}") for n in range(1000)], ["web"])) == MOST


@pytest.fixture
def full(engine: FakeEngine) -> FakeEngine:
    labels = {"com.docker.compose.project": "shop", "tier": "front-row"}
    ports = [{"PrivatePort": 80, "PublicPort": 8080, "Type": "tcp"}]
    engine.answers(
        "GET", "/containers/json",
        [{"Id": "c" * 64, "Names": ["/shop-web-1"], "Image": "nginx", "State": "running", "Status": "Up 1 hour",
          "Labels": labels, "Ports": ports}],
    )  # fmt: skip
    engine.answers("GET", "/images/json", [{"Id": "sha256:" + "1" * 64, "RepoTags": ["nginx:latest"]}])
    engine.answers("GET", "/volumes", {"Volumes": [{"Name": "data<b>", "Driver": "local"}]})
    engine.answers("GET", "/networks", [{"Id": "e" * 64, "Name": "shop_default", "Driver": "bridge"}])
    engine.answers("GET", "/info", {"Swarm": {"ControlAvailable": True}})
    engine.answers("GET", "/services", [{"ID": "s1", "Spec": {"Name": "api"}}])
    engine.answers("GET", "/nodes", [{"ID": "n1", "Description": {"Hostname": "box"}}])
    return engine


@pytest.mark.parametrize(
    ("sought", "path"),
    [
        ("8080", "/containers/shop-web-1"),
        ("front-row", "/containers/shop-web-1"),
        ("cccccccc", "/containers/shop-web-1"),
        ("project shop", "/containers#project-shop"),
        ("nginx:latest", "/images/111111111111"),
        ("data", "/volumes/data&lt;b&gt;"),
        ("shop_def", "/networks/shop_default"),
        ("api", "/services/api"),
        ("box", "/nodes"),
        ("disk", "/disk"),
    ],
)
async def test_everything_with_a_page_is_found(full: FakeEngine, asker: Asker, sought: str, path: str) -> None:
    page = await asker.get(f"/search?q={sought.replace(' ', '+')}", x_region="found")
    assert page.status == 200 and f'href="{path}"' in page.text


async def test_a_search_is_shown_and_escaped(full: FakeEngine, asker: Asker) -> None:
    page = await asker.get("/search?q=%3Cscript%3E+nothing")
    assert page.status == 200 and "&lt;script&gt;" in page.text and "Nothing has" in page.text
    assert (await asker.get("/search")).status == 200
    assert (await asker.get("/search?q=" + "x" * 5000)).status == 200


async def test_several_searches_ask_the_engine_once(full: FakeEngine, asker: Asker) -> None:
    for sought in ("s", "sh", "sho"):
        await asker.get(f"/search?q={sought}")
    assert sum(each.path == "/networks" for each in full.asked) == 1


async def test_secrets_in_labels_are_not_found_where_nothing_can_be_changed(client: Client, full: FakeEngine) -> None:
    labels = {"app.token": "hunter2", "tier": "front"}
    listed = [{"Id": "c" * 64, "Names": ["/web"], "State": "running", "Labels": labels}]
    full.answers("GET", "/containers/json", listed)
    assert [each.name for each in await SearchIndex(client).find("hunter")] == ["web"]
    read_only = Site(client, Guard(guarded("127.0.0.1:1", False), False, ()), read_only=True)
    assert await read_only.index.find("hunter") == []
    assert [each.name for each in await read_only.index.find("tier=front")] == ["web"]
