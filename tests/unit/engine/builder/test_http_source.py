"""Files of the web, with doubles of the web, the disk and the cache."""

import hashlib
from typing import Any

import pytest

from husk.engine.builder import cache_keys
from husk.engine.builder.http_source import HttpSource, name_of
from husk.engine.builder.operations import Operation, Source
from husk.errors import InvalidParameter, NotFound

URL = "https://example.com/a/file.txt"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Web:
    def __init__(self):
        self.data = b"one two"
        self.asked = 0

    async def download(self, url):
        self.asked += 1
        if self.data is None:
            raise NotFound("404")
        for start in range(0, len(self.data), 4):
            yield self.data[start : start + 4], len(self.data)


class Files:
    def __init__(self):
        self.kept = []

    async def keep_file(self, name, chunks, *, mode, owner):
        data = b"".join([chunk async for chunk in chunks])
        self.kept.append((name, data, mode, owner))
        return f"diff:{len(self.kept)}", digest(data)


class Cache:
    def __init__(self):
        self.records = {}
        self.forgotten = []

    async def find(self, key):
        return self.records.get(key)

    async def remember(self, keys, record):
        self.records.update(dict.fromkeys(keys, record))

    async def forget(self, stack):
        self.forgotten.append(stack)


class Watcher:
    session = None

    def __init__(self):
        self.told = []

    def status(self, status):
        self.told.append((status.current, status.total, status.done))


class Bench:
    def __init__(self) -> None:
        self.web, self.files, self.cache = Web(), Files(), Cache()
        parts: Any = (self.web.download, self.files, self.cache)
        self.source = HttpSource(*parts)
        self.watcher: Any = Watcher()

    async def key(self, **attributes: str) -> str:
        wanted = {f"http.{name}": value for name, value in attributes.items()}
        return await self.source.key(Source(URL, wanted), None, self.watcher)

    def found(self, key: str, **attributes: str) -> Any:
        source = Source(URL, {f"http.{name}": value for name, value in attributes.items()})
        return self.cache.records.get(cache_keys.by_definition(Operation(source), [key]))


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_file_is_fetched_once_for_a_build(bench):
    key = await bench.key()
    assert bench.found(key).outputs == ["diff:1"], "the solver finds it"
    assert bench.files.kept == [("file.txt", b"one two", 0o600, (0, 0))]
    assert bench.watcher.told == [(4, 7, False), (7, 7, False), (7, 7, True)]
    assert bench.web.asked == 1


async def test_the_same_content_is_kept_once(bench):
    assert await bench.key() == await bench.key()
    assert bench.cache.forgotten == ["diff:2"]
    bench.web.data = b"other"
    assert bench.found(await bench.key()).outputs == ["diff:3"]


async def test_what_is_known_by_its_checksum_is_not_asked_for(bench):
    key = await bench.key(checksum=digest(b"one two"))
    assert await bench.key(checksum=digest(b"one two")) == key
    assert bench.web.asked == 1


async def test_another_checksum_than_it_should_have(bench):
    with pytest.raises(InvalidParameter, match="digest mismatch"):
        await bench.key(checksum=digest(b"else"))
    assert bench.cache.forgotten == ["diff:1"]
    assert bench.cache.records == {}


async def test_modes_owners_and_names_make_another_file(bench):
    keys = {
        await bench.key(),
        await bench.key(perm="0644"),
        await bench.key(uid="5", gid="6"),
        await bench.key(filename="b"),
    }
    assert len(keys) == 4
    assert [kept[0] for kept in bench.files.kept] == ["file.txt"] * 3 + ["b"]
    assert bench.files.kept[1][2] == 0o644
    assert bench.files.kept[2][3] == (5, 6)


async def test_a_build_that_wants_nothing_from_the_cache(bench):
    fetched = await bench.source.fetch(Source(URL), None, bench.watcher)
    assert (fetched.stack, fetched.description) == ("diff:1", f"http url {URL}")


async def test_an_address_with_nothing_behind_it(bench):
    bench.web.data = None
    with pytest.raises(NotFound):
        await bench.key()
    assert bench.cache.records == {}


@pytest.mark.parametrize(
    ("attributes", "url", "name"),
    [
        ({}, "https://example.com/a/b.txt?c=d", "b.txt"),
        ({}, "https://example.com/", "download"),
        ({"http.filename": "x"}, URL, "x"),
    ],
)
def test_names(attributes, url, name):
    assert name_of(Source(url, attributes)) == name


@pytest.mark.parametrize(
    "attributes",
    [
        {"filename": "../x"},
        {"filename": ".."},
        {"filename": "a\0b"},
        {"filename": "x" * 300},
        {"perm": "rwx"},
        {"uid": "me"},
    ],
)
async def test_what_cannot_be_is_refused(bench, attributes):
    with pytest.raises(InvalidParameter):
        await bench.key(**attributes)
