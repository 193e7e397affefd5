"""A container in a program's hands: its files, processes, ports and words, on a real engine."""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

import husk
from husk.errors import CommandFailed, Forbidden, InvalidParameter
from tests.support.engines import Place

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[husk.Engine]:
    with Place() as place:
        async with husk.Engine.open(place.config) as engine:
            yield engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def box(engine: husk.Engine) -> AsyncIterator[husk.Container]:
    serve = "echo 'level=error lost' >&2; echo ready; exec httpd -f -p 80"
    async with engine.container(
        "busybox",
        ["sh", "-c", serve],
        name="box",
        ports={80: None},
        read_only=True,
        tmpfs={"/tmp": "size=4m"},
        volumes=["box-data:/data"],
        stop_signal="KILL",
    ) as box:
        await box.wait_for(port=80, log="ready", timeout=30)
        yield box
    await (await engine.volumes.get("box-data")).remove()


async def test_what_is_made_is_known(engine: husk.Engine):
    box = await engine.containers.create("busybox", "sleep 60", network="none")
    assert box.name and box.status == "created"
    await box.start()
    assert (box.status, box.attrs["State"]["Running"]) == ("running", True)
    await box.stop(timeout=0)
    assert box.status == "exited"
    await box.remove()


async def test_files_where_the_root_is_read_only(box: husk.Container):
    for directory in ("/tmp", "/data", "/dev/shm"):
        await box.files.write(f"{directory}/a/b/file", "text")
        assert (await box.exec(["cat", f"{directory}/a/b/file"])).text == "text"
        assert await box.files.read_text(f"{directory}/a/b/file") == "text"
        assert [each.name for each in await box.files.list(directory)] == ["a"]
        await box.files.remove(f"{directory}/a")
        assert not await box.files.exists(f"{directory}/a")
    with pytest.raises(Forbidden, match="read-only"):
        await box.files.write("/etc/x", "text")
    with pytest.raises(Forbidden, match="nothing can be put into /proc"):
        await box.files.write("/proc/x", "text")


async def test_a_list_with_and_without_a_shell(box: husk.Container):
    by_shell = await box.files.list("/")
    by_archive = await box.files._archived("/")
    names = {each.name for each in by_shell}
    assert {"bin", "data", "tmp"} <= names and {each.name for each in by_archive} <= names
    assert {each.name: each.mode for each in by_archive}["bin"] == {each.name: each.mode for each in by_shell}["bin"]


async def test_processes_that_cannot_be_run(box: husk.Container):
    with pytest.raises(InvalidParameter, match="executable file not found"):
        await box.exec("no-such-program")
    with pytest.raises(InvalidParameter, match="chdir"):
        await box.exec("true", working_dir="/no/such/directory")
    with pytest.raises(InvalidParameter, match="executable file not found"):
        await box.exec("no-such-program", tty=True)


async def test_processes_with_an_end(box: husk.Container):
    result = await box.exec("sleep 60", timeout=0.2)
    assert (result.timed_out, result.ok) == (True, False)
    assert "sleep 60" not in (await box.exec("ps")).text
    with pytest.raises(CommandFailed, match="No such file"):
        await box.exec("ls /nothing", check=True)
    much = b"x" * (1 << 21)
    assert (await box.exec("cat", input=much)).stdout == much, "it writes while it reads"
    assert len((await box.exec("cat", input=much, max_output=10)).stdout) == 10


async def test_its_ports_and_what_it_says_and_uses(engine: husk.Engine, box: husk.Container):
    port = box.port(80)
    assert port.url == f"http://127.0.0.1:{port.number}"
    await port.wait_for(timeout=10)
    assert [entry.text async for entry in box.logs().entries(level="error")] == ["level=error lost"]
    assert {(entry.container, entry.level) async for entry in engine.logs("box")} == {("box", "error"), ("box", "")}
    async for stats in engine.stats(interval=0.01):
        assert stats["box"].memory_usage > 0
        break
