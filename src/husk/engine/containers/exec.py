"""Exec: another process in a container, made, then started once, then inspected for a while.

    create    made      in memory alone; gone when its container stops, or with `remove`
    start     running   + exec-root/exec/<id>/ (record, process.json, its monitor's files), a monitor, a process
    (ends)    ended     in memory, with its exit code, until it is forgotten after some minutes; nothing on disk

A daemon that starts again takes over the running ones: their monitors and processes do not end with the daemon.
"""

import asyncio
import logging
import os
import signal as signals
from collections.abc import Iterator

import msgspec

from husk.aio.tasks import Tasks
from husk.engine.containers.attach import Attachment, Ending
from husk.engine.containers.config import exec_spec
from husk.engine.containers.drivers import Console, Drivers, Supervised
from husk.engine.containers.index import Companion, ContainerIndex, Instance, Publish
from husk.engine.host import EngineHost
from husk.engine.logs.records import STDERR, STDOUT
from husk.engine.model.clock import now_ns
from husk.engine.model.container import Container
from husk.engine.model.container_config import ExecConfig
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound, full_disk
from husk.runtime import complaints
from husk.runtime.supervise.conmon import Bundle
from husk.text.documents import MalformedDocument, decode

log = logging.getLogger(__name__)

FORGET_AFTER_NS = 300 * 10**9
CANNOT_INVOKE = 126
KILLED = 137


class CannotRun(InvalidParameter):
    """The process could not be started; the exec has an exit code that says so."""


class ExecRecord(msgspec.Struct, kw_only=True):
    """The record of an exec: what the next daemon needs to know about it, and what clients see of it."""

    id: str
    container_id: str
    config: ExecConfig
    probe: bool = False
    running: bool = False
    pid: int = 0
    exit_code: int | None = None
    monitor_pid: int = 0
    monitor_started: int = 0
    ended_ns: int = 0


class ExecInstance:
    """An exec as it lives in this daemon."""

    def __init__(self, record: ExecRecord) -> None:
        self.record = record
        self.supervised: Supervised | None = None
        self.ended = asyncio.Event()
        self.starting: asyncio.Task[Attachment] | None = None


class Outcome(msgspec.Struct, frozen=True):
    """The result of a command that the engine itself ran."""

    exit_code: int
    output: bytes
    timed_out: bool


class Execs(Companion):
    def __init__(
        self,
        *,
        index: ContainerIndex,
        drivers: Drivers,
        host: EngineHost,
        publish: Publish,
        tasks: Tasks,
    ) -> None:
        self._index = index
        self._assembly = drivers.assembly
        self._monitor = drivers.exec_monitor
        self._runtimes = drivers.runtimes
        self._host = host
        self._publish = publish
        self._tasks = tasks
        self._execs: dict[str, ExecInstance] = {}

    # --- looking

    def inspect(self, exec_id: str) -> ExecRecord:
        return self._find(exec_id).record

    def unfinished(self, container_id: str) -> list[str]:
        """Ids of the container's execs that have not ended, in the order they were made."""
        return [e.record.id for e in self._of(container_id) if e.record.exit_code is None]

    def _of(self, container_id: str) -> Iterator[ExecInstance]:
        return (e for e in list(self._execs.values()) if e.record.container_id == container_id)

    def _find(self, exec_id: str) -> ExecInstance:
        found = self._execs.get(exec_id)
        if found is None or not self._index.has(found.record.container_id):
            raise NotFound(f"No such exec instance: {exec_id}")
        return found

    # --- making

    async def create(self, reference: str, config: ExecConfig) -> str:
        """Note what to run in a running container; its id."""
        if not config.cmd or not config.cmd[0]:
            raise InvalidParameter("No exec command specified")
        _check_size(config.console_size)
        instance = self._index.find(reference)
        await instance.runs()
        return self._create(_active(instance, reference), config, probe=False).record.id

    async def check_user(self, reference: str, user: str) -> None:
        """Raise if nobody in the container is called so. A number needs no name."""
        instance = self._index.find(reference)
        await instance.runs()
        container = _active(instance, reference)
        if user and not (user.isascii() and user.isdigit()):
            await asyncio.to_thread(exec_spec.find_user, self._assembly.root(container.id), container, user)

    def _create(self, container: Container, config: ExecConfig, probe: bool) -> ExecInstance:
        # Most are started at once.
        self._monitor.expect()
        self._forget_old()
        complete = exec_spec.complete(config, container)
        record = ExecRecord(id=os.urandom(32).hex(), container_id=container.id, config=complete, probe=probe)
        made = self._execs[record.id] = ExecInstance(record)
        self._tell(container, f"exec_create: {_command(complete)}", record)
        return made

    def _forget_old(self) -> None:
        latest = now_ns() - FORGET_AFTER_NS
        for exec_id, old in list(self._execs.items()):
            if not self._index.has(old.record.container_id) or 0 < old.record.ended_ns < latest:
                del self._execs[exec_id]

    # --- running

    async def start(
        self, exec_id: str, *, attach: bool, tty: bool = False, size: list[int] | None = None
    ) -> Attachment:
        """Run it; the attachment carries its streams if `attach`, else nothing. `tty` is how the client will read."""
        found = self._find(exec_id)
        record = found.record
        instance = self._index.find(record.container_id)
        _active(instance, instance.record.name)
        _check_size(size)
        if record.exit_code is not None:
            raise Conflict(f"exec command {exec_id} has already run")
        if record.running:
            raise Conflict(f"exec command {exec_id} is already running")
        record.running = True
        # A client that leaves while the process is being made must not leave half of one.
        making = self._tasks.spawn(self._start(found, instance, attach, tty, size), "start exec", awaited=True)
        found.starting = making
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(self._abandon)
            raise

    def _abandon(self, making: "asyncio.Task[Attachment]") -> None:
        if not making.cancelled() and making.exception() is None:
            self._tasks.spawn(making.result().close(), "leave exec")

    async def _start(
        self, found: ExecInstance, instance: Instance, attach: bool, tty: bool, size: list[int] | None
    ) -> Attachment:
        self._monitor.expect()
        record, container = found.record, instance.record
        self._tell(container, f"exec_start: {_command(record.config)}", record)
        bundle = self._bundle(record, attach)
        runtime = self._runtimes.of(container.host_config.runtime)
        try:
            spec = await asyncio.to_thread(self._prepare, record, container, bundle, size)
            supervised = await self._monitor.start(bundle, runtime, spec, attach)
        except BaseException as error:
            failure = full_disk(error) or error
            reason = failure.message if isinstance(failure, HuskError) else str(failure)

            code = complaints.exit_code(reason)
            try:
                await asyncio.to_thread(self._monitor.discard, bundle)
            except (HuskError, OSError) as litter:
                log.warning("exec %s did not start, and its files stay: %s", record.id[:12], litter)
            finally:
                self._finish(found, CANNOT_INVOKE if code == complaints.CANNOT_START else code)
            if isinstance(error, HuskError | OSError):
                raise CannotRun(reason) from error
            raise
        record.pid, record.monitor_pid = supervised.pid, supervised.monitor_pid
        record.monitor_started = supervised.monitor_started
        try:
            self._monitor.save(bundle, msgspec.json.encode(record))
        except OSError as error:
            # It runs: this daemon knows it, and the next one does not.
            log.error("exec %s is not known to a daemon that starts anew: %s", record.id[:12], error)
        self._watch(found, instance, supervised)
        console = await supervised.attach() if attach else None
        return self._attachment(found, instance, console, tty)

    def _prepare(
        self, record: ExecRecord, container: Container, bundle: Bundle, size: list[int] | None
    ) -> dict[str, object]:
        paths = self._assembly.paths
        base = self._monitor.prepare(bundle, paths.bundle(container.id))
        return exec_spec.read_and_plan(base, self._assembly.root(container.id), container, record.config, size,
                                       self._host.limits.capabilities)  # fmt: skip

    def _bundle(self, record: ExecRecord, attached: bool) -> Bundle:
        return Bundle(
            container_id=record.container_id,
            directory=self._assembly.paths.exec_bundle(record.id),
            terminal=record.config.tty,
            stdin_open=record.config.attach_stdin and attached,
            stdin_once=True,
            command=record.config.cmd[0],
        )

    def _watch(self, found: ExecInstance, instance: Instance, supervised: Supervised) -> None:
        found.supervised = supervised
        self._tasks.spawn(self._until_ended(found, instance, supervised), f"watch exec {found.record.id[:12]}")

    async def _until_ended(self, found: ExecInstance, instance: Instance, supervised: Supervised) -> None:
        record = found.record
        bundle = self._bundle(record, attached=False)
        try:
            await supervised.wait()
            code = self._monitor.exit_status(bundle)
            if code is None:
                # Its monitor was killed: nobody reads what it writes, or would hear of its end.
                _kill(found)
        finally:
            supervised.close()
        self._finish(found, KILLED if code is None else code)
        self._tell(instance.record, "exec_die", record, exitCode=str(record.exit_code))
        await asyncio.to_thread(self._monitor.discard, bundle)

    def _finish(self, found: ExecInstance, code: int) -> None:
        found.record.running = False
        found.record.exit_code = code
        found.record.ended_ns = now_ns()
        found.ended.set()

    # --- talking

    def _attachment(self, found: ExecInstance, instance: Instance, console: Console | None, tty: bool) -> Attachment:
        config = found.record.config
        streams = {STDOUT: config.attach_stdout, STDERR: config.attach_stderr}
        carrying: asyncio.Task[None] | None = None

        def leave(attachment: Attachment) -> None:
            if carrying is not None:
                carrying.cancel()

        attachment = Attachment(
            tty=tty,
            stdin=config.attach_stdin,
            streams=frozenset(stream for stream, wanted in streams.items() if wanted),
            history=None,
            live=console is not None,
            on_close=leave,
            on_detach=lambda: self._tell(instance.record, "exec_detach", found.record),
            ending=Ending(told=lambda: instance.record.has_been_manually_stopped, ended=lambda: _has_ended(found)),
        )
        if console is not None:
            attachment.connected(console)
            carrying = self._tasks.spawn(_carry(console, attachment, found), "carry exec output")
        return attachment

    async def remove(self, exec_id: str) -> None:
        """End it, if it runs, and forget it. Processes that it has started itself are not meant."""
        found = self._find(exec_id)
        if found.starting is not None:
            await asyncio.wait([found.starting])
        if found.supervised is not None:
            _kill(found)
            await found.ended.wait()
        self._execs.pop(exec_id, None)

    async def resize(self, exec_id: str, height: int, width: int) -> None:
        record = self._find(exec_id).record
        if not record.running or not record.pid:
            raise Conflict(f"exec {exec_id} is not running")
        await self._monitor.resize(self._bundle(record, attached=False), height, width)

    # --- for the engine's own use

    async def run(self, instance: Instance, command: list[str], timeout: float, limit: int) -> Outcome:
        """Run a command to its end and keep up to `limit` bytes of its output. It is killed when time is up."""
        config = ExecConfig(cmd=command, attach_stdout=True, attach_stderr=True)
        made = self._create(_active(instance, instance.record.name), config, probe=True)
        attachment = await self.start(made.record.id, attach=True)
        output = bytearray()
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                async for _, data in attachment.output():
                    output += data[: limit + 1 - len(output)]
        except TimeoutError:
            timed_out = True
        finally:
            _kill(made)
            await attachment.close()
        await made.ended.wait()
        code = made.record.exit_code
        return Outcome(KILLED if code is None else code, bytes(output), timed_out)

    # --- with the container, and with the daemon

    def ended(self, instance: Instance) -> None:
        """Drop the execs that can be started no more. The running ones end by themselves, with their monitors."""
        for left in self._of(instance.id):
            if not left.record.running and left.record.exit_code is None:
                del self._execs[left.record.id]

    async def restore(self) -> None:
        """Take over what runs, and clean up after what ended while no daemon was there."""
        for directory, text in await asyncio.to_thread(self._monitor.saved, self._assembly.paths.execs):
            record = _read(text)
            try:
                adopted = record is not None and self._index.has(record.container_id) and self._adopt(record)
            except (HuskError, OSError):
                log.exception("the process in %s could not be taken over", directory)
                adopted = False
            if not adopted:
                await asyncio.to_thread(self._monitor.discard, Bundle(container_id="", directory=directory))

    def _adopt(self, record: ExecRecord) -> bool:
        found = ExecInstance(record)
        bundle = self._bundle(record, attached=False)
        code = self._monitor.exit_status(bundle)
        supervised = self._monitor.adopt(bundle, record.pid, record.monitor_pid, record.monitor_started)
        if supervised is not None:
            self._watch(found, self._index.find(record.container_id), supervised)
            if record.probe:
                # Nobody is left who would end it in time.
                _kill(found)
            self._execs[record.id] = found
            return True
        if code is not None:
            self._finish(found, code)
            self._execs[record.id] = found
        return False

    def _tell(self, container: Container, action: str, record: ExecRecord, **attributes: str) -> None:
        self._publish(container, action, execID=record.id, **attributes)


def _kill(found: ExecInstance) -> None:
    """Kill the process of an exec, if it runs."""
    if found.supervised is not None:
        found.supervised.process.signal(signals.SIGKILL)


def _has_ended(found: ExecInstance) -> bool:
    """Return True if the process of an exec has ended, though its monitor may not be done with it."""
    return found.supervised is None or found.supervised.process.has_ended


async def _carry(console: Console, attachment: Attachment, found: ExecInstance) -> None:
    """The exit code is known before the client sees the end: it asks for it next."""
    try:
        while (chunk := await console.read()) is not None:
            await attachment.deliver(chunk)
    finally:
        console.close()
    await found.ended.wait()
    attachment.finish()


def _active(instance: Instance, reference: str) -> Container:
    """The container, if something can be run in it."""
    record = instance.record
    match record.state.status:
        case "running":
            return record
        case "paused":
            raise Conflict(f"Container {reference} is paused, unpause the container before exec")
        case "restarting":
            raise Conflict(f"Container {record.id} is restarting, wait until the container is running")
        case _:
            raise Conflict(f"container {record.id} is not running")


def _check_size(size: list[int] | None) -> None:
    """A terminal has at most as many lines and columns; more would be none of them."""
    if any(not 0 <= value <= 0xFFFF for value in size or ()):
        raise InvalidParameter(f"invalid ConsoleSize {size}: height and width are between 0 and 65535")


def _command(config: ExecConfig) -> str:
    return f"{config.cmd[0]} {' '.join(config.cmd[1:])}"


def _read(text: bytes | None) -> ExecRecord | None:
    try:
        return None if text is None else decode(text, ExecRecord)
    except MalformedDocument:
        return None
