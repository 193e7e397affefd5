"""aiodocker, the asynchronous client on PyPI: containers, their output, exec, files, and builds by the classic door."""

import io
import tarfile
from collections.abc import AsyncIterator
from typing import Any

import aiodocker
import pytest

from tests.support.daemon import Daemon
from tests.support.images import forget_images


@pytest.fixture
async def client(daemon: Daemon) -> AsyncIterator[Any]:
    connected = aiodocker.Docker(url=daemon.host)
    yield connected
    await connected.close()
    daemon.remove_containers()
    forget_images(daemon)


def context(**files: str) -> io.BytesIO:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    data.seek(0)
    return data


async def test_a_container_from_its_creation_to_its_end(client: Any) -> None:
    container = await client.containers.create_or_replace(
        name="aio", config={"Image": "busybox", "Cmd": ["sh", "-c", "echo out; echo err >&2; exit 3"]}
    )
    await container.start()
    assert (await container.wait())["StatusCode"] == 3
    assert await container.log(stdout=True) == ["out\n"]
    assert await container.log(stderr=True) == ["err\n"]
    assert (await container.show())["State"]["ExitCode"] == 3
    await container.delete()
    with pytest.raises(aiodocker.DockerError) as error:
        await client.containers.get("aio")
    assert error.value.status == 404


async def test_another_process_and_files(client: Any) -> None:
    container = await client.containers.run({"Image": "busybox", "Cmd": ["sleep", "1000"]}, name="aio")
    process = await container.exec(["sh", "-c", "cat; echo end"], stdin=True)
    async with process.start() as stream:
        await stream.write_in(b"in\n")
        message = await stream.read_out()
        assert message is not None and message.data == b"in\n"
    await container.put_archive("/tmp", context(greeting="hello").read())
    found = await container.get_archive("/tmp/greeting")
    file = found.extractfile("greeting")
    assert file is not None and file.read() == b"hello"
    await container.kill()


async def test_a_build(client: Any) -> None:
    dockerfile = 'FROM busybox\nARG WHO\nCOPY greeting /\nRUN echo $WHO >> /greeting\nCMD ["cat", "/greeting"]\n'
    files = context(greeting="hello\n", Dockerfile=dockerfile)
    building = client.images.build(fileobj=files, encoding="gzip", tag="aio", buildargs={"WHO": "you"}, stream=True)
    lines = [line async for line in building]
    assert any("Successfully tagged aio:latest" in line.get("stream", "") for line in lines)
    container = await client.containers.run({"Image": "aio"}, name="aio")
    await container.wait()
    assert await container.log(stdout=True) == ["hello\n", "you\n"]
    broken = context(Dockerfile="FROM busybox\nRUN exit 5\n")
    with pytest.raises(aiodocker.DockerError, match="returned a non-zero code: 5"):
        await client.images.build(fileobj=broken, encoding="gzip", tag="no")
