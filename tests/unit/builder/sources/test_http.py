"""Files of the web, with doubles of the web, the disk and the cache."""

import contextlib
import hashlib
from typing import Any

import pytest

from husk.builder.graph import cache_keys
from husk.builder.graph.operations import Operation, Source
from husk.builder.sources.http import USER_AGENT, HttpSource, name_of
from husk.builder.sources.request_bodies import RequestBodies
from husk.builder.sources.seen_files import SeenFiles
from husk.errors import InvalidParameter, NotFound, NotImplementedYet
from tests.unit.builder.sources.test_seen_files import State

URL = "https://example.com/a/file.txt"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class WebFile:
    def __init__(self, web, unchanged):
        self._data = web.data
        self.unchanged = unchanged
        self.size = 0 if unchanged else len(web.data)
        self.etag, self.modified, self.name = web.etag, web.modified, web.name

    async def chunks(self):
        for start in range(0, len(self._data), 4):
            yield self._data[start : start + 4]


class Web:
    def __init__(self):
        self.data = b"one two"
        self.etag = self.modified = self.name = ""
        self.compares = True
        self.headers = []

    @property
    def asked(self):
        return len(self.headers)

    @contextlib.asynccontextmanager
    async def file(self, url, headers):
        self.headers.append(dict(headers))
        if self.data is None:
            raise NotFound("404")
        known = headers.get("if-none-match") or headers.get("if-modified-since")
        yield WebFile(self, self.compares and bool(known) and known in (self.etag, self.modified))


class Client:
    """One that has a file on its standard input, which can be read once."""

    id = "client"

    def __init__(self, **secrets):
        self._secrets = secrets
        self.uploads = 0

    async def secret(self, id):
        if id.replace(".", "_") not in self._secrets:
            raise NotFound(id)
        return self._secrets[id.replace(".", "_")]

    @contextlib.asynccontextmanager
    async def upload(self, url):
        self.uploads += 1
        assert self.uploads == 1, "there is nothing more"

        async def chunks():
            yield b"tar"

        yield chunks()


class Files:
    def __init__(self):
        self.kept = []
        self.times = []

    async def keep_file(self, name, chunks, *, mode, owner, time):
        data = b"".join([chunk async for chunk in chunks])
        self.kept.append((name, data, mode, owner))
        self.times.append(time)
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
        parts: Any = (self.web.file, self.files, self.cache)
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


async def test_a_file_that_is_still_the_same_is_not_fetched(bench):
    bench.web.etag = '"1"'
    key = await bench.key()
    assert await bench.key() == key
    assert bench.web.headers[1] == {"user-agent": USER_AGENT, "if-none-match": '"1"'}
    bench.web.compares = False
    assert await bench.key() == key, "the server told its tag again"
    assert len(bench.files.kept) == 1
    bench.web.data, bench.web.etag = b"other", '"2"'
    assert await bench.key() != key
    bench.cache.records.clear()
    await bench.key()
    assert "if-none-match" not in bench.web.headers[-1], "it is not here any more"


async def test_times_that_servers_tell(bench):
    bench.web.modified = "Sat, 03 Feb 2001 04:05:06 GMT"
    key = await bench.key()
    assert bench.files.times == [981173106]
    assert await bench.key() == key
    assert bench.web.headers[1] == {"user-agent": USER_AGENT, "if-modified-since": bench.web.modified}
    bench.web.modified = "Sat, 03 Feb 2001 04:05:07 GMT"
    assert await bench.key() != key
    assert (await bench.key(checksum=digest(b"one two"))) == (await bench.key(checksum=digest(b"one two")))


async def test_names_that_servers_tell(bench):
    bench.web.name = "told.txt"
    await bench.key()
    await bench.key(filename="wanted.txt")
    assert [kept[0] for kept in bench.files.kept] == ["told.txt", "wanted.txt"]


async def test_one_build_sees_one_state_of_a_file(bench):
    bench.watcher.session = Client()
    key = await bench.key()
    bench.web.data = b"other"
    assert await bench.key() == key
    bench.watcher.session = None
    assert await bench.key() != key


async def test_what_a_client_uploads_is_asked_for_once(bench):
    source = Source("http://buildkit-session/x", {"http.filename": "context"})
    with pytest.raises(InvalidParameter, match="belongs to a client"):
        await bench.source.key(source, None, bench.watcher)
    bench.watcher.session = Client()
    assert await bench.source.key(source, None, bench.watcher) == await bench.source.key(source, None, bench.watcher)
    assert bench.files.kept == [("context", b"tar", 0o600, (0, 0))]
    assert bench.web.asked == 0


@pytest.mark.parametrize(
    ("secrets", "attributes", "header"),
    [
        ({}, {}, None),
        ({"HTTP_AUTH_TOKEN_example_com": b"abc\n"}, {}, "Bearer abc"),
        ({"HTTP_AUTH_HEADER_example_com": b"basic abc"}, {}, "basic abc"),
        ({"mine": b"basic abc", "HTTP_AUTH_HEADER_example_com": b"other"}, {"authheadersecret": "mine"}, "basic abc"),
    ],
)
async def test_files_that_need_a_secret(bench, secrets, attributes, header):
    bench.watcher.session = Client(**secrets)
    await bench.key(**attributes)
    assert bench.web.headers[0].get("authorization") == header


async def test_secrets_that_are_missing_or_no_header(bench):
    bench.watcher.session = Client(bad=b"a\r\nb")
    with pytest.raises(InvalidParameter, match="cannot be a header"):
        await bench.key(authheadersecret="bad")
    with pytest.raises(NotFound):
        await bench.key(authheadersecret="missing")
    bench.watcher.session = None
    with pytest.raises(InvalidParameter, match="there is no client"):
        await bench.key(authheadersecret="missing")


async def test_headers_of_the_build(bench):
    source = Source(URL, {"http.header.accept": "text/plain", "http.header.host": "evil"})
    await bench.source.key(source, None, bench.watcher)
    assert bench.web.headers == [{"user-agent": USER_AGENT, "accept": "text/plain"}]
    assert USER_AGENT.startswith("buildkit/"), "servers know it by this name"


async def test_signatures_are_not_checked_yet(bench):
    with pytest.raises(NotImplementedYet):
        await bench.source.key(Source(URL, {"http.sig.pubkey": "x"}), None, bench.watcher)


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


async def test_a_body_of_a_request_is_read_once_and_known_to_the_whole_build():
    async def chunks():
        yield b"tar"

    bodies, files = RequestBodies(), Files()
    nobody: Any = None
    watcher: Any = Watcher()
    state = State()
    seen = SeenFiles.open(state)
    source = HttpSource(nobody, files, Cache(), bodies, seen)
    with bodies.offer(chunks()) as url:
        wanted = Source(url, {"http.filename": "context"})
        first = await source.have(wanted, watcher)
        assert await source.have(wanted, watcher) == first
    assert not state.written, "nothing of it stays when its request is gone"
    assert [kept[:2] for kept in files.kept] == [("context", b"tar")]


@pytest.mark.parametrize("attributes", [{}, {"http.checksum": "sha256:" + "0" * 64}])
async def test_what_is_no_address_at_all(bench, attributes):
    with pytest.raises(InvalidParameter, match="is no address"):
        await bench.source.key(Source("https://[::1", attributes), None, bench.watcher)
