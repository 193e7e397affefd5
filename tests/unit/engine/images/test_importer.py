"""`docker import`: a tar becomes an image, and nothing stays of one that fails."""

import gzip
import lzma
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import cast

import pytest

from husk.engine.images.importer import Importer
from husk.engine.model.image import Image, ImportOptions
from husk.errors import InvalidParameter, SystemFault
from husk.registry.client import RegistryClient
from tests.support.registry import digest_of, tar_of
from tests.support.shelf import Shelf

TAR = tar_of({"etc/motd": b"hello"})
PLAIN = "application/vnd.docker.image.rootfs.diff.tar"


class FakeWeb:
    def __init__(self, body: bytes = TAR) -> None:
        self.asked: list[str] = []
        self._body = body

    async def download(self, url: str) -> AsyncGenerator[tuple[bytes, int], None]:
        self.asked.append(url)
        for at in range(0, len(self._body), 5000):
            yield self._body[at : at + 5000], len(self._body)


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 700):
        yield data[at : at + 700]


async def bring(shelf: Shelf, body: bytes = TAR, **options: object) -> Image:
    importer = Importer(shelf.store, cast(RegistryClient, FakeWeb()))
    wanted = ImportOptions(**options)  # type: ignore[arg-type]
    image = shelf.catalog.get(await importer.import_stream(pieces(body), "-", wanted, shelf.told.append))
    assert image is not None
    return image


async def test_a_tar_becomes_an_image_with_one_layer(shelf: Shelf) -> None:
    image = await bring(shelf, repo="app", tag="1", changes=["CMD sh", "ENV A=1"], message="from nothing")
    assert shelf.catalog.find("app:1") == image
    assert (image.diff_ids, image.size) == ([digest_of(TAR)], len(TAR))
    assert (image.config.cmd, image.config.env) == (["/bin/sh", "-c", "sh"], ["A=1"])
    assert (image.comment, image.history[0].comment) == ("from nothing", "from nothing")
    assert image.os == "linux" and image.last_tagged
    assert shelf.statuses == [image.id]
    told = [(event.action, event.attributes["name"]) for event in shelf.happened]
    assert told == [("tag", "app:1"), ("import", image.id)]


async def test_without_a_name_it_has_none(shelf: Shelf) -> None:
    image = await bring(shelf, platform="linux/arm/v6")
    assert (shelf.catalog.names(image), image.last_tagged, image.comment) == ([], "", "Imported from -")
    assert (image.architecture, image.variant) == ("arm", "v6")


@pytest.mark.parametrize(
    ("body", "kept", "media_type"),
    [
        (TAR, TAR, PLAIN),
        (gzip.compress(TAR, mtime=0), gzip.compress(TAR, mtime=0), f"{PLAIN}.gzip"),
        (lzma.compress(TAR), TAR, PLAIN),
    ],
)
async def test_only_gzip_is_kept_as_it_came(shelf: Shelf, body: bytes, kept: bytes, media_type: str) -> None:
    await bring(shelf, body)
    (layer,) = shelf.layers.all()
    assert (layer.blob, layer.media_type, layer.diff_id) == (digest_of(kept), media_type, digest_of(TAR))


@pytest.mark.parametrize(
    "options",
    [
        {"repo": "BAD"},
        {"repo": f"app@{digest_of(b'')}"},
        {"repo": "sha256"},
        {"platform": "windows/amd64"},
        {"platform": "a/b/c/d/e"},
        {"changes": ["RUN true"]},
    ],
)
async def test_what_is_wrong_is_refused_before_a_byte_is_read(shelf: Shelf, options: dict[str, object]) -> None:
    async def unread() -> AsyncIterator[bytes]:
        raise AssertionError("somebody reads")
        yield b""

    web = FakeWeb()
    importer = Importer(shelf.store, cast(RegistryClient, web))
    wanted = ImportOptions(**options)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        await importer.import_stream(unread(), "-", wanted, shelf.told.append)
    with pytest.raises(InvalidParameter):
        await importer.import_url("example.test/x.tar", wanted, shelf.told.append)
    assert web.asked == []


async def test_what_fails_half_way_leaves_nothing(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise SystemFault("the disk is full")

    monkeypatch.setattr(shelf.catalog, "add", broken)
    with pytest.raises(SystemFault, match="the disk is full"):
        await bring(shelf, repo="app")
    assert (shelf.layers.records, shelf.layers.staged, shelf.happened) == ({}, set(), [])


async def test_an_address_of_the_web(shelf: Shelf) -> None:
    web = FakeWeb()
    importer = Importer(shelf.store, cast(RegistryClient, web))
    await importer.import_url("example.test/x.tar", ImportOptions(), shelf.told.append)
    assert web.asked == ["http://example.test/x.tar"]
    assert shelf.statuses[0] == "Downloading from http://example.test/x.tar"
    last = [one for one in shelf.told if one.status == "Importing"][-1]
    assert (last.current, last.total) == (len(TAR), len(TAR))
    (image,) = shelf.catalog
    assert image.comment == "Imported from http://example.test/x.tar"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://example.test/x", 'Get "ftp://example.test/x": unsupported protocol scheme "ftp"'),
        ("file:///etc", 'Get "file:///etc": unsupported protocol scheme "file"'),
        ("/etc/passwd", 'Get "http:///etc/passwd": http: no Host in request URL'),
        ("http://", 'Get "http://": http: no Host in request URL'),
        ("http://ex ample.test/", 'parse "http://ex ample.test/": invalid character " " in host name'),
        ("http://host:port/", 'parse "http://host:port/": '),
        ("http://[::1/x", "parse \"http://[::1/x\": missing ']' in host"),
        ("host/%2Fpasswd%", 'parse "http://host/%2Fpasswd%": invalid URL escape "%"'),
        ("http://%zz/x", 'parse "http://%zz/x": invalid URL escape "%zz"'),
        ("host/%zz?%yy", 'parse "http://host/%zz?%yy": invalid URL escape "%zz"'),
        ("a\nb", 'parse "http://a\\nb": net/url: invalid control character in URL'),
        ("a\x00b", 'parse "http://a\\u0000b": net/url: invalid control character in URL'),
        ("http://a\ud800/", 'parse "http://a'),
    ],
)
async def test_what_is_no_address_is_not_asked(shelf: Shelf, url: str, told: str) -> None:
    web = FakeWeb()
    with pytest.raises(InvalidParameter, match=f"^{re.escape(told)}"):
        await Importer(shelf.store, cast(RegistryClient, web)).import_url(url, ImportOptions(), shelf.told.append)
    assert web.asked == []
