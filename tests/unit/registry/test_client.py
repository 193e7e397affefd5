"""The client against a registry that wants tokens, stumbles, lies and hangs up (all on loopback, in this process)."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from aiohttp import web

from husk.errors import HuskError, InvalidParameter, NotFound, SystemFault, Unauthorized
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from husk.registry.manifest import DOCKER_MANIFEST, Descriptor, ImageManifest, parse_manifest
from husk.registry.reference import Reference, parse
from tests.support.fake_registry import Corrupt, Cut, FakeRegistry, IgnoreRange, Redirect, Status, Tokens, Truncate
from tests.support.names import ELSEWHERE, answer_names
from tests.support.registry import Image, digest_of, make_image

LAYER = os.urandom(3_000_000)
RIGHT = Credentials("u", "p")
WRONG = Credentials("u", "guess")


@pytest.fixture
def image() -> Image:
    return make_image([LAYER], {"Cmd": ["true"]}, compression="none")


@pytest.fixture
async def fake(image: Image) -> AsyncIterator[FakeRegistry]:
    async with FakeRegistry() as fake:
        fake.add("app", "1", image)
        yield fake


@pytest.fixture
async def client() -> AsyncIterator[RegistryClient]:
    async with RegistryClient(user_agent="husk/test", backoff=0.001) as client:
        yield client


def ref_at(fake: FakeRegistry, name: str = "app:1") -> Reference:
    return parse(f"{fake.host}/{name}")


def layer_of(image: Image) -> Descriptor:
    return Descriptor(digest=image.layer_digests[0], size=len(image.blobs[image.layer_digests[0]]))


def config_of(image: Image) -> Descriptor:
    return Descriptor(digest=image.config_digest, size=len(image.blobs[image.config_digest]))


async def download(client: RegistryClient, ref: Reference, descriptor: Descriptor) -> bytes:
    async with aclosing(client.blob(ref, descriptor)) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def failure(work: object) -> HuskError:
    with pytest.raises(HuskError) as caught:
        await work  # type: ignore[misc]
    return caught.value


async def test_a_manifest_comes_with_its_digest_and_its_type(
    client: RegistryClient, fake: FakeRegistry, image: Image
) -> None:
    fetched = await client.manifest(ref_at(fake))
    assert fetched.body == image.manifest
    assert fetched.descriptor == Descriptor(media_type=image.media_type, digest=image.digest, size=len(image.manifest))
    assert isinstance(parse_manifest(fetched.body, fetched.descriptor.media_type), ImageManifest)
    assert await client.manifest(ref_at(fake).with_digest(image.digest)) == fetched
    assert {headers["User-Agent"] for headers in fake.asked("/manifests/")} == {"husk/test"}


async def test_how_to_reach_a_registry_is_found_out_once(client: RegistryClient, fake: FakeRegistry) -> None:
    await client.manifest(ref_at(fake))
    await client.manifest(ref_at(fake))
    assert [path for _, path, _ in fake.requests] == ["/v2/", "/v2/app/manifests/1", "/v2/app/manifests/1"]


async def test_a_registry_that_moved_is_found_again(client: RegistryClient, image: Image) -> None:
    async with FakeRegistry() as first:
        first.add("app", "1", image)
        await client.manifest(ref_at(first))
        ref = ref_at(first)
    assert "connection refused" in (await failure(client.manifest(ref))).message
    assert "connection refused" in (await failure(client.manifest(ref))).message


async def test_blobs_come_in_chunks_of_at_most_a_mebibyte(
    client: RegistryClient, fake: FakeRegistry, image: Image
) -> None:
    async with aclosing(client.blob(ref_at(fake), layer_of(image))) as chunks:
        received = [chunk async for chunk in chunks]
    assert b"".join(received) == LAYER
    assert max(map(len, received)) <= 1024 * 1024 and min(map(len, received)) > 0
    assert await client.blob_bytes(ref_at(fake), config_of(image)) == image.blobs[image.config_digest]


async def test_an_empty_blob_is_a_blob(client: RegistryClient, fake: FakeRegistry) -> None:
    fake.blobs[digest_of(b"")] = b""
    assert await download(client, ref_at(fake), Descriptor(digest=digest_of(b""), size=0)) == b""


async def test_a_broken_download_goes_on_where_it_broke(
    client: RegistryClient, fake: FakeRegistry, image: Image
) -> None:
    layer = layer_of(image)
    fake.faults[layer.digest] = [Cut(100), Cut(200_000), Cut(0), Status(503), Cut(1_000_000)]
    retries: list[tuple[int, float, str]] = []
    async with aclosing(client.blob(ref_at(fake), layer, None, lambda *retry: retries.append(retry))) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == LAYER
    assert [headers.get("Range") for headers in fake.asked("/blobs/")] == [
        None,
        "bytes=100-",
        "bytes=200100-",
        "bytes=200100-",
        "bytes=200100-",
        "bytes=1200100-",
    ]
    assert [failed for failed, _, _ in retries] == [1, 1, 2, 3, 1]  # progress starts the count anew
    assert [seconds for _, seconds, _ in retries] == [0.001, 0.001, 0.002, 0.004, 0.001]
    assert retries[0][2] == "unexpected EOF"


async def test_a_registry_that_knows_no_ranges_is_read_again_from_the_start(
    client: RegistryClient, fake: FakeRegistry, image: Image
) -> None:
    fake.faults[image.layer_digests[0]] = [Cut(1_500_000), IgnoreRange()]
    assert await download(client, ref_at(fake), layer_of(image)) == LAYER


async def test_a_download_without_progress_is_given_up(
    client: RegistryClient, fake: FakeRegistry, image: Image
) -> None:
    fake.faults[image.layer_digests[0]] = [Cut(500), *[Cut(0)] * 4]
    error = await failure(download(client, ref_at(fake), layer_of(image)))
    assert error.message == "download failed after attempts=5: unexpected EOF"
    assert len(fake.asked("/blobs/")) == 5
    fake.faults[image.layer_digests[0]] = [Status(500)] * 5
    error = await failure(download(client, ref_at(fake), layer_of(image)))
    assert "received unexpected HTTP status: 500 Internal Server Error" in error.message


async def test_a_blob_of_another_size_is_not_that_blob(
    client: RegistryClient, fake: FakeRegistry, image: Image
) -> None:
    layer = layer_of(image)
    message = f"filesystem layer verification failed for digest {layer.digest}"
    fake.faults[layer.digest] = [Truncate(10)]
    assert (await failure(download(client, ref_at(fake), layer))).message == message
    smaller = Descriptor(digest=layer.digest, size=layer.size - 1)
    assert (await failure(download(client, ref_at(fake), smaller))).message == message
    fake.faults[layer.digest] = [Cut(1000), Status(416)]
    assert (await failure(download(client, ref_at(fake), layer))).message == message


async def test_a_corrupted_config_is_refused(client: RegistryClient, fake: FakeRegistry, image: Image) -> None:
    fake.faults[image.config_digest] = [Corrupt()]
    error = await failure(client.blob_bytes(ref_at(fake), config_of(image)))
    assert error.message == (
        f"error pulling image configuration: image config verification failed for digest {image.config_digest}"
    )
    huge = Descriptor(digest=image.config_digest, size=9 * 1024 * 1024)
    assert "more than 8388608" in (await failure(client.blob_bytes(ref_at(fake), huge))).message


async def test_a_blob_that_the_registry_does_not_have(client: RegistryClient, fake: FakeRegistry) -> None:
    missing = Descriptor(digest=digest_of(b"missing"), size=7)
    error = await failure(download(client, ref_at(fake), missing))
    assert isinstance(error, NotFound) and error.message == "unknown blob"
    error = await failure(client.blob_bytes(ref_at(fake), missing))
    assert isinstance(error, NotFound) and error.message == "error pulling image configuration: unknown blob"


async def test_a_digest_that_could_be_a_path_never_reaches_the_registry(
    client: RegistryClient, fake: FakeRegistry
) -> None:
    with pytest.raises(InvalidParameter):
        await download(client, ref_at(fake), Descriptor(digest="sha256:../../x", size=1))
    assert fake.requests == []


async def test_a_consumer_may_stop_early(client: RegistryClient, fake: FakeRegistry, image: Image) -> None:
    async with aclosing(client.blob(ref_at(fake), layer_of(image))) as chunks:
        async for _ in chunks:
            break
    assert await download(client, ref_at(fake), layer_of(image)) == LAYER


async def test_a_cancelled_download_ends_at_once(client: RegistryClient, fake: FakeRegistry, image: Image) -> None:
    async with asyncio.timeout(10):
        first = asyncio.Event()

        async def stall() -> None:
            async with aclosing(client.blob(ref_at(fake), layer_of(image))) as chunks:
                async for _ in chunks:
                    first.set()
                    await asyncio.Event().wait()

        async with asyncio.TaskGroup() as group:
            task = group.create_task(stall())
            await first.wait()
            task.cancel()


async def test_wrong_manifests_are_refused(client: RegistryClient, fake: FakeRegistry, image: Image) -> None:
    fake.manifests["app", image.digest] = (DOCKER_MANIFEST, image.manifest + b" ")
    error = await failure(client.manifest(ref_at(fake).with_digest(image.digest)))
    assert error.message == f"manifest verification failed for digest {image.digest}"
    # Of schema 1 a digest names a part only: nothing is taken under that type, whatever the digest is.
    for tag, body in ((image.digest, image.manifest + b" "), ("1", image.manifest)):
        fake.manifests["app", tag] = ("application/vnd.docker.distribution.manifest.v1+prettyjws", body)
        ref = ref_at(fake).with_digest(tag) if ":" in tag else ref_at(fake)
        assert "schema 1 is not supported" in (await failure(client.manifest(ref))).message
    fake.manifests["app", "huge"] = (DOCKER_MANIFEST, b" " * (4 * 1024 * 1024 + 1))
    assert "larger than" in (await failure(client.manifest(ref_at(fake, "app:huge")))).message


async def test_a_stumbling_registry_is_asked_again_for_the_manifest(
    client: RegistryClient, fake: FakeRegistry, image: Image
) -> None:
    fake.faults["1"] = [Cut(10), Status(502)]
    assert (await client.manifest(ref_at(fake))).body == image.manifest
    fake.faults["1"] = [Status(500)] * 3
    error = await failure(client.manifest(ref_at(fake)))
    assert error.message == "received unexpected HTTP status: 500 Internal Server Error"


async def test_a_registry_that_wants_to_be_left_alone_is_not_waited_for_in_silence(
    fake: FakeRegistry, image: Image
) -> None:
    busy = '{"errors": [{"code": "TOOMANYREQUESTS", "message": "You have reached your pull rate limit"}]}'
    told: list[tuple[int, float]] = []
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async with RegistryClient(backoff=0.001, sleep=sleep) as client:
        for fault in (Status(429, busy), Status(429, busy, 60), Status(503, "", 60)):
            said = "toomanyrequests: You have reached" if fault.status == 429 else "503 Service Unavailable"
            for key, ask in (("1", client.manifest(ref_at(fake))), (config_of(image).digest, None)):
                fake.faults[key] = [fault]
                error = await failure(ask or client.blob_bytes(ref_at(fake), config_of(image)))
                assert said in error.message and fake.faults[key] == []
        assert waited == []
        fake.faults[layer_of(image).digest] = [Status(429, busy, 60)]
        heard = client.blob(
            ref_at(fake), layer_of(image), None, lambda failed, seconds, why: told.append((failed, seconds))
        )
        async with aclosing(heard) as chunks:
            assert b"".join([chunk async for chunk in chunks]) == LAYER
        assert told == [(1, 30.0)] and waited == [30.0]


async def test_unknown_images_are_not_found(client: RegistryClient, fake: FakeRegistry) -> None:
    error = await failure(client.manifest(ref_at(fake, "app:2")))
    assert isinstance(error, NotFound)
    assert error.message == f"manifest for {fake.host}/app:2 not found: manifest unknown: manifest unknown"
    error = await failure(client.manifest(ref_at(fake, "other")))
    assert isinstance(error, NotFound)
    assert error.message == (
        f"repository {fake.host}/other not found: name unknown: repository name not known to registry"
    )


async def test_an_unreachable_registry_is_named(client: RegistryClient) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets the port, and connections are refused
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        error = await failure(client.manifest(parse(f"{address}/app")))
        assert isinstance(error, SystemFault)
        assert error.message == f'Get "http://{address}/v2/": dial tcp {address}: connect: connection refused'
    error = await failure(client.manifest(parse("nosuch.invalid/app")))
    assert error.message.startswith('Get "https://nosuch.invalid/v2/": dial tcp: lookup nosuch.invalid: ')


async def test_a_registry_that_must_use_tls_is_not_spoken_to_without(
    client: RegistryClient, fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_names(monkeypatch, {"rebound.test": [["127.0.0.1", ELSEWHERE]]})
    host = f"rebound.test:{fake.host.rpartition(':')[2]}"
    error = await failure(client.manifest(parse(f"{host}/app:1"), RIGHT))
    assert error.message == f'Get "https://{host}/v2/": http: server gave HTTP response to HTTPS client'
    assert isinstance(await failure(client.login(Credentials("u", "p", server_address=host))), SystemFault)
    assert fake.requests == []


async def test_credentials_do_not_follow_a_redirect_to_another_host(client: RegistryClient, image: Image) -> None:
    layer = layer_of(image)
    async with FakeRegistry() as store, FakeRegistry(tokens=Tokens()) as front:
        front.add("app", "1", image)
        store.blobs = front.blobs
        front.faults[layer.digest] = [Redirect(f"http://{store.host}/elsewhere/{layer.digest}?sig=a%2Fb%3D")]
        assert await download(client, ref_at(front), layer) == LAYER
        (seen,) = store.requests
        assert seen[1].endswith("?sig=a%2Fb%3D")
        assert "Authorization" not in seen[2]


async def test_one_token_serves_a_whole_pull(client: RegistryClient, image: Image) -> None:
    async with FakeRegistry(tokens=Tokens("u", "p")) as fake:
        fake.add("team/app", "1", image)
        ref = ref_at(fake, "team/app:1")
        await client.manifest(ref, RIGHT)
        await client.blob_bytes(ref, config_of(image), RIGHT)
        assert fake.tokens is not None
        assert fake.tokens.issued == ["repository:team/app:pull"]
        (query,) = [path for _, path, _ in fake.requests if path.startswith("/token")]
        assert query == "/token?service=fake%2Cregistry&account=u&scope=repository%3Ateam%2Fapp%3Apull"

        fake.tokens.valid.clear()  # a token that the registry no longer accepts is replaced, once for all that wait
        await asyncio.gather(*(client.manifest(ref, RIGHT) for _ in range(5)))
        assert len(fake.tokens.issued) == 2

        error = await failure(client.manifest(ref))  # what one client may read is not open to the next
        assert error.message.endswith("unauthorized: incorrect username or password")


async def test_public_images_need_a_token_and_no_credentials(client: RegistryClient, image: Image) -> None:
    async with FakeRegistry(tokens=Tokens()) as fake:
        fake.add("app", "1", image)
        assert (await client.manifest(ref_at(fake))).body == image.manifest
        assert "Authorization" not in fake.asked("/token")[0]


async def test_what_a_token_service_leaves_open_is_null(client: RegistryClient, image: Image) -> None:
    async with FakeRegistry(tokens=Tokens()) as fake:
        fake.add("app", "1", image)
        fake.said_with_tokens = {"token": None, "refresh_token": None, "expires_in": None, "issued_at": None}
        await client.manifest(ref_at(fake))


@pytest.mark.parametrize(
    "said",
    [
        {"token": "a\r\nX-Other: b"},
        {"token": "\ud800"},
        {"token": "\0"},
        {"token": "t" * 900_000},
        {"token": 7},
        {"token": {}},
        {"access_token": ""},
        {"expires_in": "soon"},
        {"expires_in": 10**400},
        {"token": "x", "more": "y" * (1 << 20)},
    ],
)
async def test_a_token_that_is_none_is_an_error_in_words(
    client: RegistryClient, image: Image, said: dict[str, object]
) -> None:
    async with FakeRegistry(tokens=Tokens()) as fake:
        fake.add("app", "1", image)
        fake.said_with_tokens = said
        error = await failure(client.manifest(ref_at(fake)))
        assert error.message and len(error.message) < 1000
        assert not any("X-Other" in headers for _, _, headers in fake.requests)


async def test_identity_and_registry_tokens_are_credentials(client: RegistryClient, image: Image) -> None:
    async with FakeRegistry(tokens=Tokens("u", "p", identity_token="refresh-me", valid={"given"})) as fake:
        fake.add("app", "1", image)
        await client.manifest(ref_at(fake), Credentials(identity_token="refresh-me"))
        await client.manifest(ref_at(fake), Credentials(registry_token="given"))
        assert [method for method, path, _ in fake.requests if path.startswith("/token")] == ["POST"]
        error = await failure(client.manifest(ref_at(fake), Credentials(identity_token="wrong")))
        assert error.message == f'Get "http://{fake.host}/v2/app/manifests/1": unauthorized: incorrect identity token'


async def test_wrong_credentials_and_missing_rights_read_as_with_docker(client: RegistryClient, image: Image) -> None:
    async with FakeRegistry(tokens=Tokens("u", "p")) as fake:
        fake.add("app", "1", image)
        for who in (WRONG, None):
            error = await failure(client.manifest(ref_at(fake), who))
            assert type(error) is SystemFault
            assert error.message == (
                f'Get "http://{fake.host}/v2/app/manifests/1": unauthorized: incorrect username or password'
            )
        assert fake.tokens is not None
        fake.tokens.allowed = False
        error = await failure(client.manifest(ref_at(fake), RIGHT))
        assert isinstance(error, NotFound)
        assert error.message == (
            f"pull access denied for {fake.host}/app, repository does not exist or may require 'docker login': "
            "denied: requested access to the resource is denied"
        )


async def test_a_registry_that_hides_what_strangers_may_not_see_is_asked_with_credentials(
    client: RegistryClient, image: Image
) -> None:
    async with FakeRegistry(tokens=Tokens("u", "p"), hides=True) as fake:
        fake.add("app", "1", image)
        assert isinstance(await failure(client.manifest(ref_at(fake))), NotFound)
        assert (await client.manifest(ref_at(fake), RIGHT)).body == image.manifest


async def test_login_checks_credentials_and_brings_the_identity_token(client: RegistryClient) -> None:
    async with FakeRegistry(tokens=Tokens("u", "p", identity_token="keep-me")) as fake:
        assert await client.login(Credentials("u", "p", server_address=f"http://{fake.host}/v1/")) == "keep-me"
        assert await client.login(Credentials(identity_token="keep-me", server_address=fake.host)) == ""
        error = await failure(client.login(Credentials("u", "guess", server_address=fake.host)))
        assert isinstance(error, Unauthorized)
        assert error.message == f'Get "http://{fake.host}/v2/": unauthorized: incorrect username or password'
    async with FakeRegistry() as fake:
        assert await client.login(Credentials("anybody", "at all", server_address=fake.host)) == ""


@pytest.mark.parametrize("address", ["bad host!", "a@b", "host:port", "[::"])
async def test_a_login_needs_an_address(client: RegistryClient, address: str) -> None:
    error = await failure(client.login(Credentials("u", "p", server_address=address)))
    assert isinstance(error, InvalidParameter) and error.message.startswith("unable to parse server address: ")


async def test_mirrors_serve_docker_hub_images_without_its_credentials(image: Image) -> None:
    async with FakeRegistry() as empty, FakeRegistry() as full:
        full.add("library/app", "1", image)
        mirrors = (f"http://{empty.host}", f"http://{full.host}/")
        async with RegistryClient((), mirrors, "husk/test", backoff=0.001) as client:
            ref = parse("app:1")
            assert (await client.manifest(ref, RIGHT)).body == image.manifest
            full.faults[image.layer_digests[0]] = [Cut(1000)]
            assert await download(client, ref, layer_of(image)) == LAYER
            assert not any("Authorization" in headers for _, _, headers in empty.requests + full.requests)
            error = await failure(client.manifest(parse("other")))
            assert "registry-1.docker.io" in error.message  # the registry itself has the last word


@pytest.mark.parametrize("who", [RIGHT, Credentials(identity_token="x")])
async def test_a_password_goes_over_plain_http_to_insecure_hosts_only(
    client: RegistryClient, image: Image, monkeypatch: pytest.MonkeyPatch, who: Credentials
) -> None:
    answer_names(monkeypatch, {"tokens.test": [["127.0.0.1", ELSEWHERE]]})
    async with FakeRegistry(tokens=Tokens("u", "p")) as tokens, FakeRegistry(tokens=Tokens("u", "p")) as fake:
        fake.add("app", "1", image)
        realm = f"tokens.test:{tokens.host.rpartition(':')[2]}"
        fake.realm = f"http://{realm}/token"
        error = await failure(client.manifest(ref_at(fake), who))
        assert error.message == (
            f'Get "http://{fake.host}/v2/app/manifests/1": refused to ask for a token over plain HTTP at {fake.realm}: '
            f"{realm} is not an insecure registry"
        )
        assert tokens.requests == []
        for fake.realm in ("ftp://x/", "", "/token", "http://[", "http://x:y/"):
            assert "invalid token auth challenge realm" in (await failure(client.manifest(ref_at(fake), who))).message


async def test_strangers_have_nothing_to_lose_at_a_plain_token_service(
    client: RegistryClient, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_names(monkeypatch, {"tokens.test": [[ELSEWHERE]]})
    async with FakeRegistry(tokens=Tokens()) as fake:
        fake.add("app", "1", image)
        fake.realm = f"http://tokens.test:{fake.host.rpartition(':')[2]}/token"
        assert (await client.manifest(ref_at(fake))).body == image.manifest


async def test_settings_hold_from_the_start_and_may_change_while_running(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_names(monkeypatch, {"plain.test": [[ELSEWHERE]]})
    async with FakeRegistry() as mirror, FakeRegistry() as plain:
        mirror.add("library/app", "1", image)
        plain.add("app", "1", image)
        wanted = named_at(plain, "plain.test")
        async with RegistryClient([wanted.domain], (), "husk/test", backoff=0.001) as client:
            assert (await client.manifest(wanted)).body == image.manifest
            assert "registry-1.docker.io" in (await failure(client.manifest(parse("app:1")))).message
            client.configure((), [f"http://{mirror.host}"])
            assert "https://plain.test" in (await failure(client.manifest(wanted))).message
            assert (await client.manifest(parse("app:1"))).body == image.manifest


async def test_one_registry_may_be_had_insecurely_by_who_asks_for_it(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_names(monkeypatch, {"one.test": [[ELSEWHERE]], "two.test": [[ELSEWHERE]]})
    async with FakeRegistry() as fake, RegistryClient(backoff=0.001) as client:
        fake.add("app", "1", image)
        one, two = named_at(fake, "one.test"), named_at(fake, "two.test")
        async with client.insecurely(one.domain) as other:
            assert (await other.manifest(one)).body == image.manifest
            assert "https://two.test" in (await failure(other.manifest(two))).message
            assert "https://one.test" in (await failure(client.manifest(one))).message


def named_at(fake: FakeRegistry, name: str) -> Reference:
    """Return the reference of an image of a registry by another name."""
    return parse(f"{name}:{fake.host.rpartition(':')[2]}/app:1")


class Pages:
    """A registry that has a page of tags for each query."""

    def __init__(self, pages: dict[str, tuple[list[str], str]]) -> None:
        self.pages = pages
        self.asked: list[str] = []

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Reference]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._page)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield parse(f"{site.name.removeprefix('http://')}/app")
        finally:
            await runner.cleanup()

    async def _page(self, request: web.Request) -> web.Response:
        if not request.path.endswith("/tags/list"):
            return web.Response()
        self.asked.append(request.query_string)
        tags, link = self.pages[request.query_string]
        return web.json_response({"tags": tags}, headers={"Link": link} if link else {})


async def test_pages_of_tags_that_lead_in_a_circle_have_an_end(client: RegistryClient) -> None:
    pages = Pages({"": (["a", "b"], '</x?p=1>; rel="next"'), "p=1": (["b", "c"], '</x?p=1>; rel="next"')})
    async with pages.served() as ref:
        assert await client.tags(ref) == ["a", "b", "c"]
    assert pages.asked == ["", "p=1"]


async def test_a_list_of_tags_without_an_end_is_refused() -> None:
    many = {f"p={n}": (["t" * 30], f'</x?p={n + 1}>; rel="next"') for n in range(10)}
    pages = Pages({"": ([], '</x?p=0>; rel="next"'), **many})
    async with pages.served() as ref, RegistryClient(backoff=0.001, largest_list=100) as client:
        assert "is larger than 100 bytes" in (await failure(client.tags(ref))).message
    assert len(pages.asked) < 5


@pytest.mark.parametrize("link", ['<http://[>; rel="next"', '<http://a:99999/?x>; rel="next"'])
async def test_a_link_that_is_no_address_is_told(client: RegistryClient, link: str) -> None:
    async with Pages({"": (["a"], link)}).served() as ref:
        assert "failed to parse Link header" in (await failure(client.tags(ref))).message
