"""A file system in which processes run that somebody talks with: those of a frontend, and of a client who looks around.

    async with steps.held(body, inputs, session) as held:
        talk = held.talk(process, streams)
        code = await talk.run()

The first process is the container's own: the container ends with it, and all others that run in it. What they write is
thrown away.
"""

import asyncio
import secrets
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.builder.graph.operations import Exec, ProcessSpec, SecretVariable
from husk.builder.solver import entitlements
from husk.builder.solver.sessions import Session
from husk.builder.steps.drivers import StepRoots
from husk.builder.steps.mounts import Prepared, variables
from husk.engine.model.container import Container
from husk.errors import Conflict, InvalidParameter
from husk.runtime import process
from husk.runtime.supervise.begun import ContainerEnd
from husk.runtime.supervise.foreground import pid_in
from husk.runtime.supervise.stdio import Pipes as Pipes
from husk.runtime.supervise.stdio import StreamEnd as StreamEnd
from husk.runtime.supervise.stdio import Streams as Streams
from husk.runtime.supervise.stdio import Terminal as Terminal

# How long a second process waits for the first to be there, and how often it looks.
_PATIENCE, _PAUSE = 10.0, 0.01
_MOST_PROCESSES = 64


class Steps(Protocol):
    """The part that runs processes: `run.Steps`."""

    def record_of(self, body: Exec, *, tty: bool) -> Container: ...

    def files_of(self, record: Container) -> StepRoots: ...

    def bundle_of(self, record: Container) -> Path: ...

    async def talk(
        self,
        record: Container,
        body: Exec,
        prepared: Prepared,
        client: "StepContainer",
        files: StepRoots,
        streams: Streams,
    ) -> ContainerEnd: ...

    async def talk_beside(
        self,
        record: Container,
        body: Exec,
        prepared: Prepared,
        client: "StepContainer",
        files: StepRoots,
        streams: Streams,
        directory: Path,
    ) -> ContainerEnd: ...


class ProcessTalk:
    """One process: `run` carries it to its end, once."""

    def __init__(self, held: "StepContainer", body: Exec, streams: Streams, *, first: bool) -> None:
        self._held = held
        self._body = body
        self._streams = streams
        self._first = first
        self._directory: Path | None = None
        self._runs = False

    async def run(self) -> int:
        """Its exit code. InvalidParameter if it could not be started."""
        self._runs = True
        try:
            ended, self._directory = await self._held.carry_out(self, self._body, self._streams, first=self._first)
        finally:
            self._runs = False
        if ended.complaint:
            raise InvalidParameter(ended.complaint)
        return ended.status

    def begun(self, directory: Path) -> None:
        self._directory = directory

    async def signal(self, number: int) -> bool:
        """False if there is no such process; one that is being started gets it as soon as its number is known."""
        try:
            found = process.Process(await self._pid())
        except ProcessLookupError:
            return False
        try:
            return found.signal(number)
        finally:
            found.close()

    async def _pid(self) -> int:
        try:
            async with asyncio.timeout(self._held.patience):
                # A process may speak before the runtime has written its number down.
                while not (pid := await asyncio.to_thread(pid_in, self._directory) if self._directory else 0):
                    if not self._runs:
                        break
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            pid = 0
        if not pid:
            raise ProcessLookupError("there is no such process")
        return pid


class StepContainer:
    def __init__(
        self,
        steps: Steps,
        body: Exec,
        prepared: Prepared,
        session: Session | None,
        granted: Collection[str] = (),
        *,
        most: int = _MOST_PROCESSES,
        patience: float = _PATIENCE,
    ) -> None:
        """`granted` is what the user of its client allows: each process is looked at. There are `most` of them at most,
        and each waits so many seconds for the first one."""
        self.granted = granted
        self._most = most
        self.patience = patience
        self._steps = steps
        self._body = body
        self._prepared = prepared
        self.session = session
        self._record: Container | None = None
        self._files: StepRoots | None = None
        self._ended = False
        self._tasks = Tasks()
        self._count = 0

    def talk(
        self,
        wanted: ProcessSpec,
        streams: Streams,
        *,
        insecure: bool = False,
        secret_env: Sequence[SecretVariable] = (),
    ) -> ProcessTalk:
        """A process that is to run. The first that is asked for is the container's own."""
        if self._ended:
            raise Conflict("the container has ended with its first process")
        if self._count >= self._most:
            raise InvalidParameter(f"a container of a build has {self._most} processes at most")
        self._count += 1
        own = self._body.process
        wanted = replace(
            wanted, hostname=wanted.hostname or own.hostname, extra_hosts=wanted.extra_hosts or own.extra_hosts
        )
        body = replace(self._body, process=wanted, insecure=insecure, secret_env=list(secret_env))
        entitlements.check_granted(body, self.granted)
        first = self._record is None
        if first:
            self._record = self._steps.record_of(body, tty=bool(streams.console_socket))
            self._files = self._steps.files_of(self._record)
        return ProcessTalk(self, body, streams, first=first)

    async def carry_out(
        self, talk: ProcessTalk, body: Exec, streams: Streams, *, first: bool
    ) -> tuple[ContainerEnd, Path]:
        running = self._tasks.spawn(self._run(talk, body, streams, first), "process of a build", awaited=True)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait([running])
            raise

    async def end(self) -> None:
        """End all that still runs."""
        self._ended = True
        await self._tasks.cancel_all()

    async def _run(self, talk: ProcessTalk, body: Exec, streams: Streams, first: bool) -> tuple[ContainerEnd, Path]:
        assert self._record is not None
        assert self._files is not None
        env = [*self._prepared.env, *await variables(self.session, body.secret_env)]
        prepared = replace(self._prepared, env=env)
        bundle = self._steps.bundle_of(self._record)
        if first:
            talk.begun(bundle)
            try:
                return await self._steps.talk(self._record, body, prepared, self, self._files, streams), bundle
            finally:
                self._ended = True
        await self._first_runs(bundle)
        directory = bundle / f"exec-{secrets.token_hex(8)}"
        talk.begun(directory)
        beside = self._steps.talk_beside(self._record, body, prepared, self, self._files, streams, directory)
        return await beside, directory

    async def _first_runs(self, bundle: Path) -> None:
        try:
            async with asyncio.timeout(self.patience):
                while not await asyncio.to_thread(pid_in, bundle):
                    if self._ended:
                        raise Conflict("the container has ended with its first process")
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            raise Conflict("the first process of the container does not run") from None
