from typing import Any

from husk.dashboard.server import Dashboard
from tests.support.fake_engine import FakeEngine
from tests.unit.dashboard.pages.conftest import Visitor

ID = "sha256:" + "a" * 64
SHORT = "a" * 12
LISTED = {"Id": ID, "RepoTags": ["app:1", "app:<b>"], "Size": 5_000_000, "Created": 1_700_000_000}
INSPECTED = {
    **LISTED,
    "Created": "2026-01-01T00:00:00Z",
    "Os": "linux",
    "Architecture": "amd64",
    "RootFS": {"Layers": ["sha256:f1"]},
}
CONTAINER = {"Id": "c" * 64, "Names": ["/web"], "ImageID": ID, "State": "running"}  # fmt: skip


def prepare(engine: FakeEngine, **changes: Any) -> None:
    engine.answers("GET", "/images/json", [LISTED])
    engine.answers("GET", f"/images/{SHORT}/json", {**INSPECTED, **changes})
    engine.answers("GET", f"/images/{ID}/history", [{"CreatedBy": "/bin/sh -c make", "Size": 7000, "Created": 1}])
    engine.answers("GET", "/containers/json", [CONTAINER])


async def test_the_list_tells_names_sizes_and_users(engine: FakeEngine, visitor: Visitor) -> None:
    prepare(engine)
    text = (await visitor.get("/images")).text
    assert "app:1, app:&lt;b&gt;" in text and "5.0 MB" in text and f"/images/{SHORT}" in text
    assert '<td data-label="Containers" class="number">1</td>' in text


async def test_an_image_tells_its_steps_and_its_containers(engine: FakeEngine, visitor: Visitor) -> None:
    prepare(engine)
    text = (await visitor.get(f"/images/{SHORT}")).text
    assert "RUN make" in text and "7.0 kB" in text and "/containers/web" in text and "linux/amd64" in text


async def test_a_read_only_dashboard_shows_no_secrets_of_steps(
    engine: FakeEngine, visitor: Visitor, dashboard: Dashboard
) -> None:
    prepare(engine)
    engine.answers(
        "GET", f"/images/{ID}/history", [{"CreatedBy": "RUN |1 TOKEN=hunter2 make", "Size": 1, "Created": 1}]
    )
    assert "hunter2" in (await visitor.get(f"/images/{SHORT}")).text
    dashboard.site.read_only = True
    text = (await visitor.get(f"/images/{SHORT}")).text
    assert "TOKEN=" in text and "hunter2" not in text


async def test_names_are_given_and_taken_away(engine: FakeEngine, visitor: Visitor) -> None:
    prepare(engine)
    engine.answers("POST", f"/images/{ID}/tag", None)
    engine.answers("GET", f"/images/{ID}/json", INSPECTED)
    engine.answers("DELETE", "/images/app:1", [{"Untagged": "app:1"}])
    assert (await visitor.post(f"/images/{SHORT}/tag", name="host:5000/app:2")).status == 303
    assert engine.last("POST", f"/images/{ID}/tag").query == {"repo": "host:5000/app", "tag": "2"}
    assert (await visitor.post(f"/images/{SHORT}/tag", name=" ")).status == 400
    assert "Take the name app:1 away?" in (await visitor.get(f"/images/{SHORT}/untag/app:1")).text
    gone = await visitor.post(f"/images/{SHORT}/untag/app:1")
    assert (gone.status, gone.headers["location"]) == (303, f"/images/{SHORT}")


async def test_a_removal_asks_whether_also_where_it_is_used(engine: FakeEngine, visitor: Visitor) -> None:
    prepare(engine)
    engine.answers("DELETE", f"/images/{ID}", [{"Deleted": ID}])
    asked = (await visitor.get(f"/images/{SHORT}/remove")).text
    assert 'name="force"' in asked and "made of it: web" in asked
    assert (await visitor.post(f"/images/{SHORT}/remove", force="1")).status == 303
    assert engine.last("DELETE", f"/images/{ID}").query["force"] == "1"


async def test_only_a_name_of_the_image_is_pushed(engine: FakeEngine, visitor: Visitor) -> None:
    prepare(engine)
    engine.answers("POST", "/images/app/push", b'{"status":"Pushed","id":"f1"}\n')
    assert (await visitor.post(f"/images/{SHORT}/push", name="other:1")).status == 400
    begun = await visitor.post(f"/images/{SHORT}/push", name="app:1")
    assert begun.status == 303
    assert "Push of app:1" in (await visitor.get(begun.headers["location"])).text


async def test_a_pull_has_a_page_of_its_own(engine: FakeEngine, visitor: Visitor) -> None:
    prepare(engine)
    line = b'{"status":"Downloading","id":"f1","progressDetail":{"current":5,"total":10}}\n'
    engine.answers("POST", "/images/create", line)
    assert (await visitor.post("/images/pull", name="")).status == 400
    begun = await visitor.post("/images/pull", name="busybox")
    assert "Pull of busybox" in (await visitor.get(begun.headers["location"])).text
    assert (await visitor.get("/images/transfers/never")).status == 404


async def test_a_prune_says_first_what_it_frees(engine: FakeEngine, visitor: Visitor) -> None:
    nameless = {"Id": "x", "RepoTags": [], "Size": 3000, "SharedSize": 1000, "Containers": 0}
    engine.answers("GET", "/system/df", {"Images": [nameless, {**LISTED, "Containers": 0, "SharedSize": 0}]})
    engine.answers("POST", "/images/prune", {"ImagesDeleted": [{"Deleted": "x"}], "SpaceReclaimed": 2000})
    asked = (await visitor.get("/images/prune")).text
    assert "Without a name: 1, which frees 2.0 kB." in asked and "2, which frees 5.0 MB." in asked
    assert (await visitor.post("/images/prune")).status == 303
    prepare(engine)
    assert "freed 2.0 kB" in (await visitor.get("/images")).text
