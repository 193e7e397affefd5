"""The client against Debian's docker-registry: open, with a login, and behind TLS."""

import asyncio
import hashlib
import os
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
import uvloop

from husk.errors import HuskError, NotFound, Unauthorized
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from husk.registry.manifest import Descriptor, ImageManifest, Index, choose_platform, parse_manifest, parse_platform
from husk.registry.reference import Reference, parse
from tests.support.names import ELSEWHERE, answer_names
from tests.support.registry import (
    PASSWORD,
    USERNAME,
    Compression,
    Media,
    Registry,
    make_image,
    push_image,
    push_index,
    tar_of,
)

LAYERS = [tar_of({"base": os.urandom(200_000)}), tar_of({"top": b"top"}), tar_of({"more": b"more"})]


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


@pytest.fixture(scope="module")
def locked() -> Iterator[Registry]:
    with Registry(login=True) as registry:
        push_image(registry, "team/app", "1", LAYERS)
        yield registry


@pytest.fixture
async def client() -> AsyncIterator[RegistryClient]:
    async with RegistryClient(user_agent="husk/test", backoff=0.001) as client:
        yield client


async def pull(
    client: RegistryClient, ref: Reference, platform: str = "linux/amd64", auth: Credentials | None = None
) -> tuple[ImageManifest, bytes, list[bytes]]:
    """Pull as the engine does, without storing anything: manifest, config, and all layers at once."""
    fetched = await client.manifest(ref, auth)
    manifest = parse_manifest(fetched.body, fetched.descriptor.media_type)
    if isinstance(manifest, Index):
        chosen = choose_platform(manifest, parse_platform(platform))
        fetched = await client.manifest(ref.with_digest(chosen.digest), auth)
        manifest = parse_manifest(fetched.body, fetched.descriptor.media_type)
    assert isinstance(manifest, ImageManifest)

    async def layer(descriptor: Descriptor) -> bytes:
        async with aclosing(client.blob(ref, descriptor, auth)) as chunks:
            body = b"".join([chunk async for chunk in chunks])
        assert "sha256:" + hashlib.sha256(body).hexdigest() == descriptor.digest
        return body

    config = await client.blob_bytes(ref, manifest.config, auth)
    return manifest, config, await asyncio.gather(*map(layer, manifest.layers))


@pytest.mark.parametrize(
    ("media", "compression"), [("oci", "gzip"), ("oci", "zstd"), ("oci", "none"), ("docker", "gzip")]
)
async def test_images_of_all_kinds_are_pulled_by_tag_and_by_digest(
    client: RegistryClient, registry: Registry, media: Media, compression: Compression
) -> None:
    image = push_image(registry, f"kinds/{media}-{compression}", "1", LAYERS, {"Cmd": ["true"]}, media, compression)
    ref = parse(f"{registry.host}/kinds/{media}-{compression}:1")
    for wanted in (ref, ref.with_digest(image.digest)):
        manifest, config, layers = await pull(client, wanted)
        assert manifest.config.digest == image.config_digest
        assert config == image.blobs[image.config_digest]
        assert layers == [image.blobs[digest] for digest in image.layer_digests]


@pytest.mark.parametrize("media", ["oci", "docker"])
async def test_the_platform_is_chosen_out_of_an_index(client: RegistryClient, registry: Registry, media: Media) -> None:
    images = [
        make_image([tar_of({architecture: b""})], media=media, architecture=architecture, variant=variant)
        for architecture, variant in (("s390x", ""), ("amd64", ""), ("arm64", "v8"))
    ]
    push_index(registry, f"many-{media}", "1", images, media)
    ref = parse(f"{registry.host}/many-{media}:1")
    for platform, image in zip(("linux/s390x", "linux/amd64", "linux/arm64"), images, strict=True):
        manifest, _, _ = await pull(client, ref, platform)
        assert manifest.config.digest == image.config_digest
    with pytest.raises(NotFound, match=r"no matching manifest for linux/riscv64 in the manifest list entries"):
        await pull(client, ref, "linux/riscv64")


async def test_what_is_not_there_is_not_found(client: RegistryClient, registry: Registry) -> None:
    push_image(registry, "there", "1", LAYERS)
    nothing = "sha256:" + "0" * 64
    for name in ("there:2", "nowhere:1", f"there@{nothing}"):
        with pytest.raises(NotFound) as error:
            await client.manifest(parse(f"{registry.host}/{name}"))
        assert error.value.message == (
            f"manifest for {registry.host}/{name} not found: manifest unknown: manifest unknown"
        )


async def test_a_locked_registry_opens_for_the_right_password(client: RegistryClient, locked: Registry) -> None:
    right, wrong = Credentials(USERNAME, PASSWORD), Credentials(USERNAME, "guess")
    ref = parse(f"{locked.host}/team/app:1")
    _, _, layers = await pull(client, ref, auth=right)
    assert len(layers) == len(LAYERS)
    for _ in range(2):  # the second time, the header that failed is remembered
        with pytest.raises(HuskError) as error:
            await client.manifest(ref, wrong)
        assert error.value.message == "unauthorized: authentication required"
    with pytest.raises(HuskError) as error:
        await client.manifest(ref)
    assert error.value.message == f'Get "http://{locked.host}/v2/team/app/manifests/1": no basic auth credentials'
    with pytest.raises(NotFound, match="manifest unknown"):
        await client.manifest(ref.with_tag("2"), right)


async def test_login(client: RegistryClient, locked: Registry) -> None:
    assert await client.login(Credentials(USERNAME, PASSWORD, server_address=locked.host)) == ""
    with pytest.raises(Unauthorized) as error:
        await client.login(Credentials(USERNAME, "guess", server_address=locked.host))
    url = f"http://{locked.host}/v2/"
    assert error.value.message == f"login attempt to {url} failed with status: 401 Unauthorized"
    with pytest.raises(HuskError) as nobody:
        await client.login(Credentials(server_address=locked.host))
    assert nobody.value.message == f'Get "{url}": no basic auth credentials'


def test_uvloop_names_the_refusing_address_too() -> None:
    async def attempt() -> None:
        async with RegistryClient() as client:
            await client.manifest(parse("127.0.0.1:1/app"))

    with pytest.raises(HuskError) as error:
        uvloop.run(attempt())
    assert error.value.message == 'Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused'


def _self_signed(key: Path, certificate: Path) -> None:
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=husk"]
    where = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *kind, *where], check=True, capture_output=True)


@pytest.fixture
async def tls_front(registry: Registry, tmp_path: Path) -> AsyncIterator[str]:
    """The address of a TLS front with a self-signed certificate before the registry."""
    await asyncio.to_thread(_self_signed, tmp_path / "key", tmp_path / "cert")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    host, port = registry.host.split(":")

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back_reader, back_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(copy(reader, back_writer), copy(back_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


async def test_a_loopback_registry_may_use_any_certificate(registry: Registry, tls_front: str) -> None:
    image = push_image(registry, "tls", "1", LAYERS)
    async with RegistryClient() as client:
        assert (await client.manifest(parse(f"{tls_front}/tls:1"))).body == image.manifest


async def test_any_other_registry_must_have_a_certificate_that_verifies(
    tls_front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_names(monkeypatch, {"rebound.test": [["127.0.0.1", ELSEWHERE]]})
    host = f"rebound.test:{tls_front.rpartition(':')[2]}"
    async with RegistryClient() as client:
        with pytest.raises(HuskError) as error:
            await client.manifest(parse(f"{host}/tls:1"))
    assert error.value.message == (
        f'Get "https://{host}/v2/": tls: failed to verify certificate: x509: certificate signed by unknown authority'
    )
