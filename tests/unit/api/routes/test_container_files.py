"""Files of a container over HTTP, past a double of the copier: who sends the body, and how a path is told."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession

from husk.errors import NotFound
from husk.storage.workers.answers import FileStatus
from tests.unit.api.fake_engine import FakeEngine

STATUS = FileStatus("x", 5, 0o100644, 10**9, "")


class FakeArchive:
    status = STATUS

    def __init__(self, fails: Exception | None) -> None:
        self._fails = fails

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b"some "
        if self._fails is not None:
            raise self._fails
        yield b"bytes"


class FakeCopier:
    def __init__(self) -> None:
        self.fails: Exception | None = None
        self.received: list[tuple[str, bytes, dict[str, bool]]] = []
        self.paths: list[str] = []

    async def status(self, reference: str, path: str) -> FileStatus:
        self.paths.append(path)
        if reference != "web":
            raise NotFound(f"No such container: {reference}")
        return STATUS

    @asynccontextmanager
    async def read(self, reference: str, path: str, outlet: int | None) -> AsyncIterator[Any]:
        await self.status(reference, path)
        assert outlet is None, "over TCP nobody else can send"
        yield FakeArchive(self.fails)

    @asynccontextmanager
    async def export(self, reference: str, outlet: int | None) -> AsyncIterator[FakeArchive]:
        await self.status(reference, "/")
        yield FakeArchive(self.fails)

    async def write(self, reference: str, path: str, archive: Any, **how: bool) -> None:
        await self.status(reference, path)
        self.received.append((path, b"".join([bytes(piece) async for piece in archive]), how))


@pytest.fixture
def copier(engine: FakeEngine) -> FakeCopier:
    made: Any = engine.verbs
    made.copier = FakeCopier()
    made.differ = SimpleNamespace(changes=_no_changes)
    return made.copier


async def _no_changes(reference: str) -> list[object]:
    return []


def told(response: Any) -> dict[str, Any]:
    header = response.headers["X-Docker-Container-Path-Stat"]
    return json.loads(base64.b64decode(header))


async def test_what_a_path_names_is_in_a_header(client: ClientSession, copier: FakeCopier) -> None:
    response = await client.head("/containers/web/archive?path=/a%FFb")
    assert response.status == 200 and (told(response)["name"], told(response)["size"]) == ("x", 5)
    assert copier.paths == ["/a\udcffb"]
    assert (await client.head("/containers/other/archive?path=/")).status == 404


async def test_files_come_out(client: ClientSession, copier: FakeCopier) -> None:
    response = await client.get("/containers/web/archive?path=/x")
    assert (await response.read(), response.content_type) == (b"some bytes", "application/x-tar")
    assert told(response)["name"] == "x"


async def test_a_failure_on_the_way_is_no_whole_answer(client: ClientSession, copier: FakeCopier) -> None:
    copier.fails = NotFound("the disk is gone")
    for path in ("/containers/web/archive?path=/x", "/containers/web/export"):
        response = await client.get(path)
        with pytest.raises(ClientError):
            await response.read()


async def test_files_go_in(client: ClientSession, copier: FakeCopier) -> None:
    response = await client.put("/containers/web/archive?path=/d&noOverwriteDirNonDir=1&copyUIDGID=1", data=b"a tar")
    assert response.status == 200
    assert copier.received == [("/d", b"a tar", {"keep_kinds": True, "as_user": True})]


async def test_a_large_archive_goes_in_by_pieces(client: ClientSession, copier: FakeCopier) -> None:
    await client.put("/containers/web/archive?path=/d", data=bytes(3 << 20))
    ((path, body, how),) = copier.received
    assert (path, len(body), how) == ("/d", 3 << 20, {"keep_kinds": False, "as_user": False})
    assert (await client.put("/containers/other/archive?path=/d", data=bytes(3 << 20))).status == 404


async def test_no_changes_are_null(client: ClientSession, copier: FakeCopier) -> None:
    assert await (await client.get("/containers/web/changes")).json() is None
