"""A stock build client (`docker buildx`) whose session a test asks, without a daemon: a socket that knows just enough.

    async with StockClient(tmp_path, work) as client:
        await client.build("--secret", "id=token,src=secret.txt", context)

`work` gets the session when the client wants its build solved; the build then fails, for nothing was built.
"""

import asyncio
import contextlib
import json
import os
from pathlib import Path

from husk.aio.tasks import Tasks
from husk.builder.protocol.session.attach import attach
from husk.builder.protocol.session.client import ClientSession
from husk.builder.solver.sessions import Sessions
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import UNIMPLEMENTED, GrpcError

PLUGIN = Path(__file__).resolve().parents[2] / ".venv/docker/cli-plugins/docker-buildx"
ENOUGH = "that is all that was to be seen"

_INFO = {"ID": "x", "ServerVersion": "28.0.0", "OSType": "linux", "Architecture": "x86_64", "Driver": "overlay2"}
_ANSWERS = {
    "/_ping": {},
    "/version": {"ApiVersion": "1.48", "MinAPIVersion": "1.24", "Version": "28.0.0", "Os": "linux", "Arch": "amd64"},
    "/info": _INFO,
}


class Below:
    """A connection that has left HTTP/1.1."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer

    async def read(self):
        return await self._reader.read(1 << 18)

    async def write(self, data):
        self._writer.write(data)
        await self._writer.drain()

    async def finish(self):
        self._writer.close()

    def abort(self):
        self._writer.transport.abort()


class StockClient:
    def __init__(self, directory, work, plugin=PLUGIN):
        self._directory = Path(directory)
        self._work = work
        self._plugin = plugin
        self._socket = self._directory / "s"
        self._tasks = Tasks()
        self.sessions = Sessions()
        self._pinged = asyncio.Event()
        self._seen = asyncio.Event()
        self.failure = None
        self.done = False

    async def __aenter__(self):
        plugins = self._directory / "docker/cli-plugins"
        plugins.mkdir(parents=True)
        (plugins / "docker-buildx").symlink_to(self._plugin)
        self._server = await asyncio.start_unix_server(self._serve, self._socket)
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await self._tasks.cancel_all()

    async def build(self, *arguments, environment=None):
        """Run the client to its end; what it said."""
        process = await asyncio.create_subprocess_exec(
            "docker",
            "buildx",
            "build",
            "--progress=plain",
            *map(str, arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._directory),
                "DOCKER_CONFIG": str(self._directory / "docker"),
                "DOCKER_HOST": f"unix://{self._socket}",
                **(environment or {}),
            },
        )
        try:
            async with asyncio.timeout(60):
                said, _ = await process.communicate()
        except BaseException:
            process.kill()
            raise
        if self.failure is not None:
            raise self.failure
        assert self.done, said.decode()
        return said.decode()

    async def _serve(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._request(reader, writer):
                pass
        writer.close()

    async def _request(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        path = head[0].split()[1].partition("?")[0]
        headers: dict[str, list[str]] = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            headers.setdefault(name.strip().lower(), []).append(value.strip())
        if path.endswith(("/session", "/grpc")):
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
            below = Below(reader, writer)
            if path.endswith("/session"):
                await attach(below, headers, self.sessions)
            else:
                async with GrpcConnection(below, handler=self._called) as connection:
                    await connection.wait_closed()
            return False
        body = json.dumps(next((_ANSWERS[end] for end in _ANSWERS if path.endswith(end)), {})).encode()
        fields = f"Api-Version: 1.48\r\nOstype: linux\r\nBuilder-Version: 2\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + fields.encode())
        if not head[0].startswith("HEAD"):
            writer.write(body)
        return True

    async def _called(self, stream):
        if stream.path.endswith("Control/Solve"):
            session = await self.sessions.get(_field(await stream.recv(), 5).decode())
            if isinstance(session, ClientSession) and session.serves_files:
                await self._solve(session)
                raise GrpcError(UNIMPLEMENTED, ENOUGH)
            # The client only looks at what we can do.
            await self._pinged.wait()
            await stream.send(b"")
        elif stream.path.endswith(("/ListWorkers", "/Ping")):
            await stream.recv()
            await stream.send(b"")
            if stream.path.endswith("/Ping"):
                self._pinged.set()
        elif stream.path.endswith("/Status"):
            await self._pinged.wait()
        elif stream.path.endswith("LLBBridge/Solve"):
            await self._seen.wait()
            raise GrpcError(UNIMPLEMENTED, ENOUGH)
        else:
            raise GrpcError(UNIMPLEMENTED, f"unknown method {stream.path}")

    async def _solve(self, session):
        try:
            await self._work(session)
            self.done = True
        except Exception as error:
            self.failure = error
        finally:
            self._seen.set()


def _field(message, wanted):
    """The bytes of one field of a protobuf message."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        if tag & 7 == 2:
            size, position = _varint(message, position)
            if tag >> 3 == wanted:
                return message[position : position + size]
            position += size
        else:
            _, position = _varint(message, position)
    return b""


def _varint(data, position):
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
