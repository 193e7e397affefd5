"""Processes that a client talks with; each is a program of this host here."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest

from husk.builder.graph import ops
from husk.builder.protocol.messages import gateway
from husk.kernel import process
from husk.rpc.grpc.status import GrpcError
from tests.unit.builder.protocol.fake_builder import Caller, FakeBuilder, calling
from tests.unit.builder.protocol.test_gateway import made

PATH = "/moby.buildkit.v1.frontend.LLBBridge/ExecProcess"
BUILD = {"buildkit-controlapi-buildid": ["b"]}


class Talk:
    def __init__(self, wanted: Any, streams: Any) -> None:
        self._wanted = wanted
        self._streams = streams
        self._child: Any = None
        self.ended = asyncio.Event()

    async def run(self) -> int:
        streams = self._streams
        self._child = process.spawn(
            self._wanted.args, stdin=streams.stdin, stdout=streams.stdout, stderr=streams.stderr
        )
        streams.begin()
        try:
            return await process.wait(self._child)
        except asyncio.CancelledError:
            await process.end_family(self._child)
            self.ended.set()
            raise

    async def signal(self, number: int) -> bool:
        return process.send_signal(self._child.pidfd, number)


class Held:
    def __init__(self) -> None:
        self.talks: list[Talk] = []

    def talk(self, wanted: Any, streams: Any, **more: Any) -> Talk:
        self.talks.append(Talk(wanted, streams))
        return self.talks[-1]


class Bench:
    client: Caller

    def __init__(self) -> None:
        self.held = Held()
        self.bodies: list[Any] = []
        self.builder = FakeBuilder(self.hold)

    @asynccontextmanager
    async def hold(self, body: Any, inputs: Any, session: Any, platform: Any, granted: Any) -> Any:
        self.bodies.append((body, inputs))
        yield self.held

    async def talk(self, script: str, *messages: gateway.ExecMessage, until: bytes = b"", fds: Any = (0, 1, 2)) -> Any:
        """Return the output of a shell's script; messages are sent when it has said `until`."""
        meta = ops.Meta(args=["/bin/sh", "-c", script])
        init = gateway.ExecMessage("p", init=gateway.InitMessage("c", meta, list(fds)))
        back: list[gateway.ExecMessage] = []
        async with asyncio.timeout(20), await self.client.connection.call(PATH, BUILD) as stream:
            await stream.send(init.encode())
            waiting = list(messages)
            said = b""
            while not (back and back[-1].done):
                if waiting and until in said:
                    await stream.send(waiting.pop(0).encode())
                    continue
                data = await stream.recv()
                assert data is not None
                back.append(gateway.ExecMessage.decode(data))
                said += back[-1].file.data if back[-1].file else b""
        return back


@pytest.fixture
async def bench():
    bench = Bench()
    builder = bench.builder
    async with calling(builder) as client:
        bench.client = client
        job = await builder.bench.jobs.begin("b", None)
        ref = (await made(client)).id
        root = ops.Mount(dest="/", input=-1, result_id=ref)
        new = gateway.NewContainerRequest("c", [root], hostname="h", extra_hosts=[ops.HostIP("n", "1.2.3.4")])
        await client.gateway("NewContainer", new, gateway.Empty)
        yield bench
        await builder.bench.jobs.end(job)


def file(data: bytes = b"", *, eof: bool = False, fd: int = 0) -> gateway.ExecMessage:
    return gateway.ExecMessage("p", file=gateway.FdMessage(fd, eof, data))


def said(back: list[gateway.ExecMessage], fd: int) -> bytes:
    return b"".join(one.file.data for one in back if one.file and one.file.fd == fd)


async def test_a_container_is_mounted_from_refs(bench):
    ((body, inputs),) = bench.bodies
    assert inputs == ["make(image())"]
    assert (body.mounts[0].target, body.mounts[0].input, body.process.hostname) == ("/", 0, "h")
    assert body.process.extra_hosts == [("n", "1.2.3.4")]


async def test_what_is_said_there_and_back(bench):
    back = await bench.talk("cat; echo oh >&2; exit 3", file(b"hel"), file(b"lo", eof=True))
    assert (said(back, 1), said(back, 2)) == (b"hello", b"oh\n")
    assert back[0].started is not None
    assert [one.file.fd for one in back if one.file and one.file.eof] == [1, 2]
    assert back[-2].exit.code == 3
    assert back[-2].exit.error.message == "exit code: 3"


async def test_streams_that_nobody_wants(bench):
    back = await bench.talk("cat; echo out; echo oh >&2", fds=[2])
    assert (said(back, 1), said(back, 2)) == (b"", b"oh\n")
    assert back[-2].exit.code == 0


async def test_signals_and_a_size(bench):
    script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done"
    resize = gateway.ExecMessage("p", resize=gateway.ResizeMessage(3, 4))
    stop = gateway.ExecMessage("p", signal=gateway.SignalMessage("SIGTERM"))
    back = await bench.talk(script, resize, stop, until=b"ready")
    assert back[-2].exit.code == 9


async def test_what_cannot_be_is_refused(bench):
    wrong = gateway.ExecMessage("p", signal=gateway.SignalMessage("SIGNOT"))
    with pytest.raises(GrpcError, match="Unknown signal SIGNOT"):
        await bench.talk("echo ready; sleep 100", wrong, until=b"ready")
    with pytest.raises(GrpcError, match="nothing can be written to descriptor 1"):
        await bench.talk("echo ready; sleep 100", file(b"x", fd=1), until=b"ready")
    for message, complaint in (
        (gateway.ExecMessage(""), "ProcessID required"),
        (gateway.ExecMessage("q", file=gateway.FdMessage()), "not found"),
        (
            gateway.ExecMessage("q", init=gateway.InitMessage("other", ops.Meta(args=["x"]))),
            "previously released",
        ),
    ):
        with pytest.raises(GrpcError, match=complaint):
            async with await bench.client.connection.call(PATH, BUILD) as stream:
                await stream.send(message.encode())
                await stream.recv()
    with pytest.raises(GrpcError, match="must be its root"):
        await bench.client.gateway("NewContainer", gateway.NewContainerRequest("d"), gateway.Empty)
    release = gateway.ReleaseContainerRequest("c")
    await bench.client.gateway("ReleaseContainer", release, gateway.Empty)
    with pytest.raises(GrpcError, match="previously released"):
        await bench.client.gateway("ReleaseContainer", release, gateway.Empty)


async def test_a_process_ends_with_the_stream(bench):
    meta = ops.Meta(args=["/bin/sh", "-c", "echo ready; exec sleep 1000"])
    stream = await bench.client.connection.call(PATH, BUILD)
    await stream.send(gateway.ExecMessage("p", init=gateway.InitMessage("c", meta, [1])).encode())
    while gateway.ExecMessage.decode(await stream.recv()).file is None:
        pass
    (talk,) = bench.held.talks
    stream.cancel()
    async with asyncio.timeout(20):
        await talk.ended.wait()
