"""Builds of `POST /build?version=2`, with real jobs and doubles of what does the work."""

import asyncio
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.builder.protocol.messages import control
from husk.builder.protocol.posted import IMAGE_ID, TRACE, PostedBuild, PostedBuilds
from husk.errors import Conflict, InvalidParameter, NotFound
from tests.unit.builder.protocol.fake_builder import FakeBuilder, serving_control


async def chunks(*data):
    for one in data:
        yield one


class Backend(FakeBuilder):
    """One whose builds read their context."""

    def __init__(self):
        super().__init__()
        self.read = []
        self.hangs = asyncio.Event()
        self.fails = None
        self.answer = {"containerimage.digest": "sha256:1"}

    async def solve(self, request, /):
        self.builds.append(request)
        if self.fails:
            raise self.fails
        job = await self.bench.jobs.begin(request.id, None)
        try:
            body = self.bodies.get(request.question.attributes.get("context", ""))
            if body:
                self.read += [one async for one in body.chunks()]
            if request.question.attributes.get("hang"):
                self.hangs.set()
                await asyncio.Event().wait()
            if request.question.attributes.get("fail"):
                raise InvalidParameter("it failed")
            return self.answer
        finally:
            await self.bench.jobs.end(job)


@pytest.fixture
def builder():
    return Backend()


@pytest.fixture
def posted(builder):
    return PostedBuilds(builder, serving_control(builder))


def wanted(**more):
    more.setdefault("attributes", {})
    more.setdefault("exporters", [control.Exporter("moby", {"name": "x"})])
    return PostedBuild(**more)


async def test_the_body_is_the_context_and_the_image_is_told(posted, builder):
    told: list[Any] = []
    await posted.build(wanted(cache_from=["a"], inline_cache=True), chunks(b"ab", b"c"), told.append)
    assert builder.read == [b"ab", b"c"]
    assert told[-1].id == IMAGE_ID and told[-1].aux.id == "sha256:1"
    assert all(one.id == TRACE for one in told[:-1])
    (request,) = builder.builds
    assert request.question.frontend == "dockerfile.v0"
    assert [(one.kind, one.attributes) for one in request.cache_imports] == [("registry", {"ref": "a"})]
    assert [one.kind for one in request.cache_exports] == ["inline"]


async def test_a_quiet_one_says_the_id_alone(posted):
    told: list[Any] = []
    await posted.build(wanted(quiet=True), chunks(), told.append)
    assert [one.stream for one in told] == ["sha256:1\n"]


async def test_directories_of_the_session_and_addresses(posted, builder):
    await posted.build(wanted(remote="client-session", session=""), chunks(), lambda _: None)
    await posted.build(wanted(remote="https://x/y.git"), chunks(), lambda _: None)
    assert [one.question.attributes.get("context") for one in builder.builds] == [None, "https://x/y.git"]


async def test_an_export_that_is_no_image_tells_none(posted):
    told: list[Any] = []
    await posted.build(wanted(exporters=[control.Exporter("local")]), chunks(), told.append)
    assert [one for one in told if one.id == IMAGE_ID] == []


async def test_errors_are_ours(posted, builder):
    with pytest.raises(InvalidParameter, match="it failed"):
        await posted.build(wanted(attributes={"fail": "1"}), chunks(), lambda _: None)
    builder.fails = NotFound("no session")
    with pytest.raises(NotFound, match="no session"):
        await posted.build(wanted(), chunks(), lambda _: None)


async def test_a_client_may_cancel_it(posted, builder):
    tasks = Tasks()
    hanging = wanted(id="b", attributes={"hang": "1"})
    building = tasks.spawn(posted.build(hanging, chunks(), lambda _: None), "build", awaited=True)
    await builder.hangs.wait()
    posted.cancel("another")
    posted.cancel("b")
    with pytest.raises(InvalidParameter, match="cancelled"):
        await building


async def test_the_context_of_another_request(posted, builder):
    tasks = Tasks()
    waiting = wanted(id="b", remote="upload-request")
    building = tasks.spawn(posted.build(waiting, chunks(), lambda _: None), "build", awaited=True)
    await posted.upload("b", chunks(b"mine"))
    await building
    assert builder.read == [b"mine"]


async def test_a_context_for_nobody(builder):
    posted = PostedBuilds(builder, serving_control(builder), patience=0.01)
    with pytest.raises(NotFound, match="no build b waits"):
        await posted.upload("b", chunks())
    with pytest.raises(InvalidParameter, match="no context has come"):
        await posted.build(wanted(id="b", remote="upload-request"), chunks(), lambda _: None)


async def test_a_second_context_is_refused(posted):
    tasks = Tasks()
    first = tasks.spawn(posted.upload("b", chunks()), "upload", awaited=True)
    await asyncio.sleep(0)
    with pytest.raises(Conflict):
        await posted.upload("b", chunks())
    assert not first.done()
    await tasks.cancel_all()
