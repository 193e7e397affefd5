"""Remains of a build of the classic API, with doubles of all that works for it."""

from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.cache.prune import PrunedCache
from husk.builder.classic.build import ClassicRequest
from husk.builder.dockerfile.options import Options
from husk.builder.graph.operations import Source
from husk.builder.service import Builder
from husk.builder.solver.interfaces import Record
from husk.builder.solver.source_policy import Resolved, ResolvedFile
from husk.config import CacheRule
from husk.errors import InvalidParameter, NotFound
from tests.support.waiting import until_async


class Classic:
    def __init__(self, cache):
        self.contexts = []
        self.requests = []
        self.held = []
        self._cache = cache
        self.fails = False

    async def build(self, request, context, credentials, report, watcher):
        self.contexts.append(context)
        self.requests.append(request)
        self.held.append(list(self._cache.held))
        if self.fails:
            raise InvalidParameter("unknown instruction: RUM")
        return SimpleNamespace(id="sha256:image")


class Cache:
    def __init__(self):
        self.forgotten = []
        self.held = []

    async def forget(self, stack):
        self.forgotten.append(stack)

    def hold(self, record):
        self.held.append(record.id)

    def release(self, record):
        self.held.remove(record.id)


class Pruner:
    def __init__(self):
        self.collected = []

    async def collect(self, rules):
        self.collected.append(rules)
        return PrunedCache()

    async def prune(self, filters, *, all, keep):
        return PrunedCache(freed=keep)

    async def items(self, filters):
        return ["an item"]


class Contexts:
    async def keep_file(self, name, chunks, *, mode, owner):
        return f"diff:{name} " + b"".join([chunk async for chunk in chunks]).decode(), "sha256:1"

    async def unpack(self, chunks):
        return "diff:" + b"".join([chunk async for chunk in chunks]).decode()

    async def look(self, stack, path, *, inside=False):
        names = ["a.c", "b.h"] if inside else [path]
        return [SimpleNamespace(name=f"{name}") for name in names]


class Registry:
    archive = True

    async def download(self, url):
        yield b"BZhfrom " if self.archive else b"FROM", 8
        yield b"web", 8


class Web:
    async def have(self, source, watcher):
        return ResolvedFile("sha256:1", "x"), Record("id", ["diff:1"])


class Steps:
    def reload(self, defaults):
        self.defaults = defaults


class Git:
    async def resolve(self, source, watcher):
        return Resolved("refs/heads/main", "1", "1")

    async def have(self, source, watcher):
        watcher.log(b"fetching")
        return Record("id", ["diff:git"])


class Rest:
    count = 0

    def worked(self):
        self.count += 1

    async def close(self):
        self.count = -1


class Bench:
    def __init__(self) -> None:
        self.rest: Any = Rest()
        self.cache: Any = Cache()
        self.classic: Any = Classic(self.cache)
        self.registry: Any = Registry()
        self.steps: Any = Steps()
        self.pruner: Any = Pruner()
        doubles: dict[str, Any] = dict.fromkeys(("kept", "sessions"))
        doubles |= {"contexts": Contexts(), "steps": self.steps, "registry": self.registry}
        doubles |= {"sources": SimpleNamespace(git=Git(), web=Web())}
        doubles |= {"frontend": SimpleNamespace(jobs=None, definitions=None)}
        doubles |= {"results": SimpleNamespace(solves=None, classic=self.classic)}
        doubles |= {"cache": self.cache, "pruner": self.pruner}
        self.builder = Builder(rules=[CacheRule(keep=1)], platforms=list, rest=self.rest, **doubles)
        self.told: list[Any] = []

    async def upload(self) -> Any:
        async def chunks():
            yield b"context"

        return await self.builder.build_upload(REQUEST, chunks(), NOBODYS, self.told.append)


REQUEST: Any = None
NOBODYS: Any = None


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_context_lives_as_long_as_its_build(bench):
    assert (await bench.upload()).id == "sha256:image"
    await until_async(lambda: bench.pruner.collected, "the cache is collected")
    assert bench.classic.contexts == bench.cache.forgotten == ["diff:context"]
    assert bench.pruner.collected == [[CacheRule(keep=1)]]
    assert bench.rest.count == 1


async def test_it_goes_when_the_build_fails_too(bench):
    bench.classic.fails = True
    with pytest.raises(InvalidParameter):
        await bench.upload()
    await bench.builder.close()
    assert bench.cache.forgotten == ["diff:context"]


async def test_a_context_from_the_web(bench):
    await bench.builder.build_remote(REQUEST, "https://example.com/x.tar", NOBODYS, bench.told.append)
    await bench.builder.close()
    assert bench.classic.contexts == bench.cache.forgotten == ["diff:BZhfrom web"]
    assert [progress.current for progress in bench.told] == [8, 11]


async def test_what_is_no_archive_is_a_dockerfile(bench):
    bench.registry.archive = False
    request: Any = ClassicRequest(options=Options(), dockerfile="other")
    await bench.builder.build_remote(request, "https://example.com/x", NOBODYS, bench.told.append)
    await bench.builder.close()
    assert bench.classic.contexts == bench.cache.forgotten == ["diff:Dockerfile FROMweb"]
    assert bench.classic.requests[-1].dockerfile == "Dockerfile"


async def test_a_repository_is_held_while_it_is_built(bench):
    await bench.builder.build_remote(REQUEST, "https://example.com/x.git#main", NOBODYS, bench.told.append)
    assert bench.classic.contexts == ["diff:git"]
    assert (bench.classic.held, bench.cache.held, bench.cache.forgotten) == ([["id"]], [], [])
    assert bench.told[0].stream == "fetching"


async def test_other_addresses(bench):
    with pytest.raises(InvalidParameter, match=r"^remoteURL \(rubbish\) could not be recognized as URL$"):
        await bench.builder.build_remote(REQUEST, "rubbish", NOBODYS, bench.told.append)


async def test_a_context_that_cannot_be_had(bench):
    async def download(url):
        raise NotFound("not there")
        yield

    bench.registry.download = download
    with pytest.raises(NotFound, match=r"^error downloading remote context http://xxxxx:xxxxx@host/x: not there$"):
        await bench.builder.build_remote(REQUEST, "http://me:hidden@host/x", NOBODYS, bench.told.append)


async def test_the_cache_is_shown_and_pruned(bench):
    assert await bench.builder.items() == ["an item"]
    assert (await bench.builder.prune(NOBODYS, all=True, keep=7)).freed == 7


async def test_files_of_a_result_are_looked_at(bench):
    class Made:
        async def stack(self):
            return "diff:x"

    ref: Any = Made()
    assert (await bench.builder.stat(ref, "/a")).name == "/a"
    assert [one.name for one in await bench.builder.entries(ref, "/")] == ["a.c", "b.h"]
    assert [one.name for one in await bench.builder.entries(ref, "/", "*.[h]")] == ["b.h"]
    with pytest.raises(InvalidParameter, match="more than 1024 letters"):
        await bench.builder.entries(ref, "/", "?" * 1025)


async def test_what_sources_are_is_told_as_part_of_the_build(bench):
    log: Any = SimpleNamespace(started=lambda vertex: bench.told.append(vertex.name), ended=lambda vertex: None)
    job: Any = SimpleNamespace(log=log, session=None)
    assert (await bench.builder.resolve_git(job, Source("git://x/y"), "")).id == "1"
    assert (await bench.builder.resolve_file(job, Source("http://x/y"), "shown")).name == "x"
    assert bench.told == ["[internal] resolve git://x/y", "shown"]


def test_new_settings_go_to_the_steps():
    bench = Bench()
    bench.builder.reload(NOBODYS)
    assert bench.steps.defaults is NOBODYS
