import pytest

from husk.builder.protocol.messages.common import Timestamp
from husk.builder.protocol.messages.control import BuildHistoryRecord, Exporter, StatusResponse, Vertex, VertexLog
from husk.dashboard.buildkit import BuildKit
from husk.dashboard.server import Dashboard
from tests.support.fake_engine import FakeEngine
from tests.unit.dashboard.pages.conftest import Visitor

RECORD = {"ID": "r1", "Type": "regular", "Description": "RUN <make>", "Size": 5000, "InUse": False}
BUILD = BuildHistoryRecord(
    ref="b1",
    exporters=[Exporter("moby", {"name": "shop/<app>"})],
    frontend_attrs={"build-arg:TOKEN": "hunter2"},
    created_at=Timestamp(100),
    completed_at=Timestamp(163),
    total_steps=4,
    completed_steps=3,
    cached_steps=1,
)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A builder with one build; the names of those that were forgotten."""
    forgotten: list[str] = []

    async def builds(self: BuildKit) -> list[BuildHistoryRecord]:
        return [BUILD]

    async def build(self: BuildKit, ref: str) -> BuildHistoryRecord:
        return BUILD

    async def told_by(self: BuildKit, ref: str, *, ended: bool) -> list[StatusResponse]:
        assert ended
        return [StatusResponse([Vertex(digest="d", name="RUN <x>")], [], [VertexLog("d", msg=b"<said>")])]

    async def forget(self: BuildKit, ref: str) -> None:
        forgotten.append(ref)

    for act in (builds, build, told_by, forget):
        monkeypatch.setattr(BuildKit, act.__name__, act)
    return forgotten


async def test_builds_are_listed_and_shown_with_their_steps(visitor: Visitor, known: list[str]) -> None:
    page = await visitor.get("/builds")
    for word in ("shop/&lt;app&gt;", "done", "3 of 4", "1 min 3 s", "/builds/b1"):
        assert word in page.text
    page = await visitor.get("/builds/b1")
    for word in ("RUN &lt;x&gt;", "&lt;said&gt;", "Argument TOKEN"):
        assert word in page.text
    assert "hunter2" not in page.text


async def test_a_build_is_forgotten_after_a_question(visitor: Visitor, known: list[str]) -> None:
    assert "Forget the build of shop/&lt;app&gt;?" in (await visitor.get("/builds/b1/forget")).text
    assert known == []
    assert (await visitor.post("/builds/b1/forget")).status == 303
    assert known == ["b1"]


async def test_an_engine_that_tells_of_no_builds(visitor: Visitor) -> None:
    assert "does not tell which builds" in (await visitor.get("/builds")).text


async def test_records_of_builds_are_removed_after_a_question(engine: FakeEngine, visitor: Visitor) -> None:
    engine.answers("GET", "/system/df", {"BuildCache": [RECORD, {**RECORD, "ID": "r2", "InUse": True}]})
    engine.answers("POST", "/build/prune", {"CachesDeleted": ["r1"], "SpaceReclaimed": 5000})
    assert "RUN &lt;make&gt;" in (await visitor.get("/builds/cache")).text
    assert "1 records of 2 are not in use, of 5.0 kB" in (await visitor.get("/builds/cache/prune")).text
    assert (await visitor.post("/builds/cache/prune", all="1")).status == 303
    assert "freed 5.0 kB" in (await visitor.get("/builds/cache")).text


async def test_a_read_only_dashboard_shows_no_secrets_of_steps(
    visitor: Visitor, known: list[str], dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told_by(self: BuildKit, ref: str, *, ended: bool) -> list[StatusResponse]:
        return [StatusResponse([Vertex(digest="d", name="RUN login --password hunter2")], [], [])]

    monkeypatch.setattr(BuildKit, "told_by", told_by)
    assert "hunter2" in (await visitor.get("/builds/b1")).text
    dashboard.site.read_only = True
    text = (await visitor.get("/builds/b1")).text
    assert "RUN login" in text and "hunter2" not in text
