"""Stop and kill: have a container's process end, by a signal and by another one if the first is not enough.

Waiting for the end happens outside the container's lock, because the end itself is recorded under it.
"""

import asyncio
import contextlib
import logging
import signal as signals

from msgspec.structs import replace

from husk.engine.containers import pause, states
from husk.engine.containers.drivers import Assembly
from husk.engine.containers.index import ContainerIndex, Exit, Instance, Publish
from husk.engine.containers.pause import Pauser
from husk.engine.model.signals import parse_signal, stop_signal
from husk.errors import Conflict, HuskError, NotModified, SystemFault

log = logging.getLogger(__name__)

DEFAULT_STOP_TIMEOUT = 10
KILL_PATIENCE = 10.0


class Stopper:
    def __init__(self, index: ContainerIndex, assembly: Assembly, pauser: Pauser, publish: Publish) -> None:
        self._index = index
        self._assembly = assembly
        self._pauser = pauser
        self._publish = publish

    async def stop(self, instance: Instance, timeout: int | None, signal: str) -> None:
        record = instance.record
        wanted = parse_signal(signal) if signal else stop_signal(record.config.stop_signal)
        if not await instance.runs():
            raise NotModified("container is already stopped")
        if timeout is None:
            timeout = DEFAULT_STOP_TIMEOUT if record.config.stop_timeout is None else record.config.stop_timeout
        exit = instance.next_exit()
        await self._note(instance)
        if not await self._gave_up_restarting(instance):
            await self._end(instance, exit, wanted, timeout)
        self._publish(record, "stop")

    async def end_all(self) -> None:
        """End all that run, each in its own time, as nobody's wish: their policies count when the daemon is back."""
        running = [instance for instance in self._index if instance.record.state.status in ("running", "paused")]
        await asyncio.gather(*map(self._end_with_daemon, running))

    async def _end_with_daemon(self, instance: Instance) -> None:
        config = instance.record.config
        timeout = DEFAULT_STOP_TIMEOUT if config.stop_timeout is None else config.stop_timeout
        exit = instance.next_exit()
        try:
            await self._end(instance, exit, stop_signal(config.stop_signal), timeout)
        except (HuskError, OSError) as error:
            log.error("container %s does not end with the daemon: %s", instance.id[:12], error)

    async def _end(self, instance: Instance, exit: "asyncio.Future[Exit]", wanted: int, timeout: int) -> None:
        """End the container by the signal, or by SIGKILL after so many seconds; a negative number is no limit."""
        container = instance.id
        await self._signal(instance, wanted, thaw=True)
        if not await _within(exit, None if timeout < 0 else timeout):
            log.info("container %s did not end %s s after signal %s: killing it", container[:12], timeout, wanted)
            await self._signal(instance, signals.SIGKILL, thaw=True)
            if not await _within(exit, KILL_PATIENCE):
                raise SystemFault(f"cannot stop container: {container}: it did not end after SIGKILL")

    async def kill(self, instance: Instance, signal: str) -> None:
        wanted = parse_signal(signal or "SIGKILL")
        record = instance.record
        if not await instance.runs():
            raise Conflict(f"container {record.id} is not running")
        meant_to_end = wanted in (signals.SIGKILL, stop_signal(record.config.stop_signal))
        if record.state.status == "restarting" and not meant_to_end:
            raise Conflict(f"container {record.id} is restarting")
        exit = instance.next_exit()
        if meant_to_end:
            await self._note(instance)
        if not await self._gave_up_restarting(instance):
            # As dockerd: without a stop signal of its own every signal is one that it should take now.
            await self._signal(instance, wanted, thaw=meant_to_end or not record.config.stop_signal)
        if wanted == signals.SIGKILL:
            await _within(exit, KILL_PATIENCE)
        else:
            exit.cancel()

    async def end_for_removal(self, instance: Instance) -> None:
        """Kill it, or give up its next run; SystemFault if it does not end."""
        await self._note(instance)
        exit = instance.next_exit()
        if not await self._gave_up_restarting(instance):
            await self._signal(instance, signals.SIGKILL, thaw=True)
        if not instance.record.state.running:
            exit.cancel()
        elif not await _within(exit, KILL_PATIENCE):
            raise SystemFault(f"cannot remove container {instance.id}: it did not end after SIGKILL")

    async def _note(self, instance: Instance) -> None:
        """Record that somebody wants its end, for its restart policy, before anything is done for that."""
        async with instance.lock:
            record = instance.draft.record
            if not record.has_been_manually_stopped and self._index.present(instance):
                await self._index.settle(instance, replace(record, has_been_manually_stopped=True))

    async def _gave_up_restarting(self, instance: Instance) -> bool:
        """End a container's wait for its next run; False if it has none: one being started has a process by then."""
        if instance.record.state.status != "restarting":
            return False
        async with instance.lock:
            if instance.record.state.status != "restarting":
                return False
            instance.rest()
            record = instance.draft.record
            await self._index.settle(instance, replace(record, state=states.given_up(record.state)))
            instance.announce_exit(Exit(instance.record.state.exit_code))
        return True

    async def _signal(self, instance: Instance, number: int, *, thaw: bool) -> None:
        """Send a signal. A frozen process takes it only once it is thawed, which `thaw` does."""
        async with instance.lock:
            record = instance.record
            if instance.process is None:
                return
            if number == signals.SIGKILL:
                # Whatever the record says: it may have been frozen by others, or by a runtime that died in it.
                await pause.thaw(self._assembly, record)
            instance.process.signal(number)
            self._publish(record, "kill", signal=str(number))
            if thaw and record.state.status == "paused":
                # Where a frozen process can be killed, it is gone.
                with contextlib.suppress(Conflict, *([SystemFault] if number == signals.SIGKILL else [])):
                    await self._pauser.resume(instance)


async def _within(future: "asyncio.Future[Exit]", seconds: float | None) -> bool:
    done, _ = await asyncio.wait({future}, timeout=seconds)
    return bool(done)
