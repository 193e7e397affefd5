"""The calls NewContainer, ReleaseContainer and ExecProcess: processes that a client or a frontend talks with.

All processes of one client may share one stream: each message has the id of its process. What comes back of a process:
Started, its output by descriptors, the ends of those, Exit, Done.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable

from husk.aio.tasks import Tasks
from husk.builder.graph import llb_read, ops
from husk.builder.graph.operations import Exec, ExecMount, ProcessSpec, SecretVariable
from husk.builder.jobs.jobs import Job
from husk.builder.protocol.messages import gateway
from husk.builder.protocol.messages.common import Status
from husk.builder.protocol.serve import Metadata, answer
from husk.builder.steps.held import Pipes, ProcessTalk, StreamEnd, Streams, Terminal
from husk.builder.store.file_actions import NONE
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound
from husk.rpc.grpc.status import UNKNOWN, GrpcError
from husk.rpc.grpc.stream import ServerStream

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_UNKNOWN_STATUS = 255
# Whoever still holds a stream when its process has ended is not waited for, in seconds.
_PATIENCE = 1.0
# Messages of input that a process has not read yet.
_MOST_WAITING = 64

Send = Callable[[gateway.ExecMessage], Awaitable[None]]


async def serve(stream: ServerStream, job: Job) -> None:
    """Answer one of these calls for a build."""

    async def add(request: gateway.NewContainerRequest, metadata: Metadata) -> gateway.Empty:
        await _new_container(job, request)
        return gateway.Empty()

    async def release(request: gateway.ReleaseContainerRequest, metadata: Metadata) -> gateway.Empty:
        await job.containers.release(request.container_id)
        return gateway.Empty()

    match stream.path.rpartition("/")[2]:
        case "NewContainer":
            await answer(gateway.NewContainerRequest, add)(stream)
        case "ReleaseContainer":
            await answer(gateway.ReleaseContainerRequest, release)(stream)
        case _:
            await _exec_process(stream, job)


async def _new_container(job: Job, request: gateway.NewContainerRequest) -> None:
    mounts: list[ExecMount] = []
    inputs: list[str] = []
    for message in request.mounts:
        place = NONE
        if message.result_id:
            place = len(inputs)
            inputs.append(await job.ref(message.result_id).stack())
        mounts.append(llb_read.checked(llb_read.mount(_with_input(message, place))))
    if not mounts or mounts[0].target != "/":
        raise InvalidParameter("the first mount of a container must be its root")
    body = Exec(
        process=ProcessSpec(
            args=["/"],
            hostname=request.hostname,
            extra_hosts=[(host.host, host.ip) for host in request.extra_hosts],
        ),
        mounts=mounts,
        network=llb_read.network(request.network),
    )
    await job.containers.add(request.container_id, body, inputs, llb_read.platform(request.platform))


def _with_input(message: ops.Mount, place: int) -> ops.Mount:
    """The same mount as operations have it: its source is one of the inputs, and nothing of it is kept."""
    return ops.Mount(
        input=place,
        selector=message.selector,
        dest=message.dest,
        output=NONE,
        readonly=message.readonly,
        mount_type=message.mount_type,
        tmpfs_opt=message.tmpfs_opt,
        cache_opt=message.cache_opt,
        secret_opt=message.secret_opt,
        ssh_opt=message.ssh_opt,
    )


async def _exec_process(stream: ServerStream, job: Job) -> None:
    """Serve one stream until its client ends it; the processes that it has started end with it."""
    tasks = Tasks()
    sending = asyncio.Lock()
    processes: dict[str, _Process] = {}

    async def send(message: gateway.ExecMessage) -> None:
        async with sending:
            await stream.send(message.encode())

    try:
        while (data := await stream.recv()) is not None:
            message = gateway.ExecMessage.decode(data)
            if not message.process_id:
                raise InvalidParameter("ProcessID required")
            if message.init is not None:
                if message.process_id in processes:
                    raise Conflict(f"Process {message.process_id} already exists")
                process = _Process(job, message.process_id, message.init, send)
                processes[message.process_id] = process
                tasks.spawn(process.run(), "process of a frontend")
            elif message.process_id not in processes:
                raise NotFound(f'IO for process "{message.process_id}" not found')
            else:
                await processes[message.process_id].told(message)
        await tasks.join()
    finally:
        await tasks.cancel_all()


class _Process:
    def __init__(self, job: Job, id: str, init: gateway.InitMessage, send: Send) -> None:
        meta = init.meta or ops.Meta()
        process = llb_read.checked(llb_read.process(meta))
        env = process.env if not init.tty or _names_terminal(process.env) else [*process.env, "TERM=xterm"]
        self._process = ProcessSpec(args=process.args, env=env, cwd=process.cwd or "/", user=process.user)
        self._secret_env = [SecretVariable(one.id, one.name, one.optional) for one in init.secretenv]
        self._held = job.containers.get(init.container_id)
        self._id = id
        self._init = init
        self._send = send
        self._streams: Streams | None = None
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_WAITING)
        self._signals: asyncio.Queue[signal.Signals] = asyncio.Queue(_MOST_WAITING)
        self._size: tuple[int, int] | None = None
        self._ended = asyncio.Event()

    async def run(self) -> None:
        tasks = Tasks()
        status: Status | None = None
        code = _UNKNOWN_STATUS
        try:
            with Terminal() if self._init.tty else Pipes() as streams:
                if self._size is not None:
                    streams.resize(*self._size)
                self._streams = streams
                try:
                    code = await self._talk_with(streams, tasks)
                finally:
                    self._streams = None
                    await tasks.cancel_all()
        except HuskError as error:
            status = Status(UNKNOWN, error.message)
        except (OSError, TimeoutError) as error:
            status = Status(UNKNOWN, f"the streams of the process: {error}")
        if code and status is None:
            status = Status(UNKNOWN, f"exit code: {code}")
        self._ended.set()
        for waiting in (self._waiting, self._signals):
            while not waiting.empty():
                waiting.get_nowait()
        for fd in (one for one in self._init.fds if one != _STDIN):
            await self._tell(gateway.ExecMessage(file=gateway.FdMessage(fd, eof=True)))
        await self._tell(gateway.ExecMessage(exit=gateway.ExitMessage(code, status)))
        await self._tell(gateway.ExecMessage(done=gateway.Empty()))

    async def _talk_with(self, streams: Streams, tasks: Tasks) -> int:
        talk = self._held.talk(
            self._process,
            streams,
            insecure=self._init.security == ops.SECURITY_INSECURE,
            secret_env=self._secret_env,
        )
        running = tasks.spawn(talk.run(), "process", awaited=True)
        tasks.spawn(self._pass_signals(talk), "signals of a process")
        await self._tell(gateway.ExecMessage(started=gateway.Empty()))
        if not await _opened(streams, running):
            return await running
        if _STDIN in self._init.fds:
            tasks.spawn(self._feed(streams), "input of a process")
        elif not self._init.tty:
            streams.input.close()
        reading = [tasks.spawn(self._read(_STDOUT, streams.output), "output of a process", awaited=True)]
        if streams.errors is not None:
            reading.append(tasks.spawn(self._read(_STDERR, streams.errors), "errors of a process", awaited=True))
        await asyncio.wait([running])
        await asyncio.wait(reading, timeout=_PATIENCE)
        if running.cancelled():
            raise Conflict("the container was released")
        return running.result()

    async def told(self, message: gateway.ExecMessage) -> None:
        """Pass the client's input, size or signal to the process; a process that has ended gets none."""
        if message.file is not None:
            await self._take(message.file)
        elif message.resize is not None:
            self._size = message.resize.rows & 0xFFFF, message.resize.cols & 0xFFFF
            if self._streams is not None:
                self._streams.resize(*self._size)
        elif message.signal is not None:
            number = signal.__dict__.get(message.signal.name)
            if not isinstance(number, signal.Signals):
                raise InvalidParameter(f"Unknown signal {message.signal.name}")
            if not self._ended.is_set():
                await self._signals.put(number)

    async def _take(self, file: gateway.FdMessage) -> None:
        if file.fd != _STDIN:
            raise InvalidParameter(f"nothing can be written to descriptor {file.fd}")
        # It waits while the process does not read, and no longer than that lives.
        for data in ([file.data] if file.data else []) + ([None] if file.eof else []):
            if not self._ended.is_set():
                await self._waiting.put(data)

    async def _pass_signals(self, talk: ProcessTalk) -> None:
        while True:
            await talk.signal(await self._signals.get())

    async def _feed(self, streams: Streams) -> None:
        while (data := await self._waiting.get()) is not None:
            # What it does not read any more is read over.
            with contextlib.suppress(OSError):
                await streams.input.write(data)
        if not self._init.tty:
            streams.input.close()

    async def _read(self, fd: int, source: StreamEnd) -> None:
        while data := await source.read():
            if fd in self._init.fds:
                await self._tell(gateway.ExecMessage(file=gateway.FdMessage(fd, data=data)))

    async def _tell(self, message: gateway.ExecMessage) -> None:
        message.process_id = self._id
        try:
            await self._send(message)
        except GrpcError:
            return  # nobody listens any more; the stream's end ends the process


async def _opened(streams: Streams, running: "asyncio.Task[int]") -> bool:
    """Wait until the streams are there; False if the process has ended before."""
    tasks = Tasks()
    opened = tasks.spawn(streams.opened(), "streams of a process", awaited=True)
    try:
        await asyncio.wait([opened, running], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            return False
        await opened
        return True
    finally:
        await tasks.cancel_all()


def _names_terminal(env: list[str]) -> bool:
    return any(entry.startswith("TERM=") for entry in env)
