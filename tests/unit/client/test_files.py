import asyncio
import base64
import io
import stat
import tarfile

import pytest

from husk.api.http.hijack import hijack
from husk.api.http.response import Response, Unanswered, fields
from husk.api.streams.framing import frame
from husk.client.container import Container
from husk.client.files import FileChange
from husk.errors import CommandFailed, InvalidParameter, NotFound
from tests.support.fake_engine import failed

# As no calendar has it: a container may set the time of a file to any number.
ODD_TIMES = b"81a4 3 99999999999999999 later\n81a4 3 -5 earlier\n"
LISTED = b"41ed 4096 7 .\n41ed 4096 7 ..\n81a4 3 8 b file\n41ed 4096 9 a\n"


def described(mode: int, size: int = 3, name: str = "x") -> Response:
    text = f'{{"name":"{name}","size":{size},"mode":{mode},"mtime":"2026-01-02T03:04:05Z"}}'
    return Response(200, b"", fields({"X-Docker-Container-Path-Stat": base64.b64encode(text.encode()).decode()}))


DIRECTORY, FILE = described(1 << 31 | 0o755), described(0o644)


def prints(output: bytes, stream_of: int = 1):
    async def process(request):
        stream = hijack(request, b"")
        await stream.write(frame(stream_of, output))
        await stream.finish()
        return Unanswered()

    return process


@pytest.fixture
def box(calls, engine):
    engine.answers("HEAD", "/containers/c1/archive", DIRECTORY)
    engine.answers("POST", "/containers/c1/exec", {"Id": "e1"})
    engine.answers("GET", "/exec/e1/json", {"ExitCode": 0, "Pid": 7})
    engine.answers("POST", "/exec/e1/start", prints(LISTED))
    return Container(calls, {"Id": "c1", "Name": "/box", "State": {"Status": "running"}})


async def test_a_list_by_the_containers_own_words(box, engine):
    found = await box.files.list("/data")
    assert [(each.name, each.size, each.is_dir) for each in found] == [("a", 4096, True), ("b file", 3, False)]
    assert engine.last("POST", "/containers/c1/exec").document["Cmd"][-1] == "/data"
    assert engine.last("HEAD", "/containers/c1/archive").query == {"path": "/data/."}


async def test_times_of_files_that_no_calendar_has(box, engine):
    engine.answers("POST", "/exec/e1/start", prints(ODD_TIMES))
    assert [each.mtime.year for each in await box.files.list("/data")] == [1970, 9999]


async def test_names_with_signs_that_others_end_lines_with(box, engine):
    engine.answers("POST", "/exec/e1/start", prints("81a4 3 8 a\u2028b\n81a4 3 8 c\rd\n".encode()))
    assert [each.name for each in await box.files.list("/data")] == ["a\u2028b", "c\rd"]


@pytest.mark.parametrize("told", [b"81a4 0 0 two\nlines\n", b"81a4 0 0 a\n81a4 x 8 odd\n"])
async def test_what_the_container_tells_unclearly_is_read_out_of_an_archive(box, engine, told):
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("./two\nlines"))
    engine.answers("GET", "/containers/c1/archive", whole.getvalue())
    engine.answers("POST", "/exec/e1/start", prints(told))
    assert [each.name for each in await box.files.list("/data")] == ["two\nlines"]


@pytest.mark.parametrize("status", ["running", "exited"])
async def test_a_list_out_of_an_archive(box, engine, status):
    """Of a container that does not run, or has no shell."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for name in (".", "./z", "./sub", "./sub/deep"):
            archive.addfile(tarfile.TarInfo(name))
    engine.answers("GET", "/containers/c1/archive", whole.getvalue())
    engine.answers("GET", "/exec/e1/json", {"ExitCode": 127, "Pid": 0})
    box.attrs["State"] = {"Status": status}
    assert [each.name for each in await box.files.list("/")] == ["sub", "z"]
    assert engine.last("GET", "/containers/c1/archive").query == {"path": "/."}


async def test_what_is_no_directory_has_no_list(box, engine):
    engine.answers("HEAD", "/containers/c1/archive", FILE)
    with pytest.raises(InvalidParameter, match="not a directory: /x"):
        await box.files.list("/x")
    with pytest.raises(InvalidParameter, match="not an absolute path"):
        await box.files.list("x")


async def test_reading_and_writing(box, engine):
    engine.answers("PUT", "/containers/c1/archive", None)
    await box.files.write("/in/file", "täxt", mode=0o600)
    engine.answers("GET", "/containers/c1/archive", engine.last("PUT", "/containers/c1/archive").body)
    assert (await box.files.read("/in/file"), await box.files.read_text("/in/file")) == ("täxt".encode(), "täxt")
    assert await box.files.exists("/in/file") and stat.S_ISDIR((await box.files.stat("/in")).mode)
    engine.answers("HEAD", "/containers/c1/archive", failed(404, ""))
    assert not await box.files.exists("/in/file")


async def test_removing(box, engine):
    await box.files.remove("/data/../x")
    asked = engine.last("POST", "/containers/c1/exec").document
    assert (asked["Cmd"], asked["User"]) == (["rm", "-rf", "--", "/x"], "0")
    for path in ("/", "//", "/..", "relative"):
        with pytest.raises(InvalidParameter, match="absolute path"):
            await box.files.remove(path)
    engine.answers("POST", "/exec/e1/start", prints(b"rm: busy\n", 2))
    engine.answers("GET", "/exec/e1/json", {"ExitCode": 1, "Pid": 7})
    with pytest.raises(CommandFailed, match="rm: busy"):
        await box.files.remove("/proc/1")


async def test_watching_a_directory(box, engine):
    lists = [b"81a4 3 8 same\n81a4 3 8 goes\n81a4 3 8 grows\n", b"81a4 3 8 same\n81a4 4 8 grows\n81a4 0 9 new\n"]
    engine.answers("POST", "/exec/e1/start", *map(prints, lists))
    changes = []
    async with asyncio.timeout(10):
        async for change in box.files.watch("/d", interval=0):
            changes.append(change)
            if len(changes) == 3:
                break
    assert changes == [
        FileChange("removed", "/d/goes"),
        FileChange("changed", "/d/grows"),
        FileChange("created", "/d/new"),
    ]


async def test_watching_a_file_that_goes(box, engine):
    engine.answers("HEAD", "/containers/c1/archive", FILE, described(0o644, 4), failed(404, ""))
    kinds = []
    async with asyncio.timeout(10):
        async for change in box.files.watch("/f", interval=0):
            kinds.append(change.kind)
            if len(kinds) == 2:
                break
    assert kinds == ["changed", "removed"]
    with pytest.raises(NotFound):
        await anext(box.files.watch("/f"))
