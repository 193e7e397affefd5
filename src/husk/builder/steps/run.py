"""The life of a step: it is given what it needs, its process runs to its end, and all is taken back.

Whatever happens, and whenever whoever waits for it is cancelled, nothing of a step stays but the outputs of one that
ended well. What a thread is at work on is waited for first: then it can be undone.

A runtime that is loaded while a step runs, for the step that follows it.

There is one at most, for the runtime that was used last. It has an id and a bundle of its own, so that the step which
takes it gets these. If none does within a while it is ended: a step that lasts is not followed soon.
"""

import asyncio
import functools
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.builder.graph.operations import Exec
from husk.builder.solver import entitlements
from husk.builder.solver.interfaces import Customer
from husk.builder.solver.sessions import Session
from husk.builder.steps import plan, platforms
from husk.builder.steps.drivers import Asking, Begun, Foreground, Networks, Runtimes, StepRoots
from husk.builder.steps.held import StepContainer
from husk.builder.steps.mounts import Mounts, Prepared
from husk.builder.steps.remains import Remains
from husk.config import NO_CEILING, ContainerDefaults, StepCeiling
from husk.engine.containers.config.spec import Extras, block_paths, seccomp_profile
from husk.engine.containers.start import wanted_devices
from husk.engine.host import EngineHost
from husk.engine.model.container import Container, Draft
from husk.engine.networks.connector import Connected
from husk.errors import HuskError, SystemFault
from husk.registry.manifest import Platform
from husk.runtime import complaints
from husk.runtime.assembly import cgroup
from husk.runtime.assembly.network_files import read_ours
from husk.runtime.assembly.paths import Paths
from husk.runtime.emulators import registered
from husk.runtime.oci import OCIRuntime
from husk.runtime.seccomp.precompiled import CompiledFilters
from husk.runtime.sockets import Serve, serving
from husk.runtime.spec.devices import block_device_numbers
from husk.runtime.spec.document import RuntimeContainer, SpecMount, oci_spec
from husk.runtime.spec.users import ProcessUser, resolve_user
from husk.runtime.supervise.begun import ContainerEnd
from husk.runtime.supervise.stdio import Streams

_KEPT_FOR = 1.0
log = logging.getLogger(__name__)

Made = TypeVar("Made")

# So many steps may have files that are still being removed. Each has a thread, and there are few.
_MOST_REMOVED = 2


class Steps:
    def __init__(
        self,
        *,
        paths: Paths,
        files: Callable[[str], StepRoots],
        mounts: Mounts,
        networks: Networks,
        runtimes: Runtimes,
        foreground: Foreground,
        host: EngineHost,
        defaults: ContainerDefaults,
        entitlements: Collection[str] = ("network.host",),
        limits: StepCeiling = NO_CEILING,
        remains: Remains | None = None,
        most_removed: int = _MOST_REMOVED,
    ) -> None:
        """`files` makes the files of a step by its id. `entitlements` are what steps of any build may ask for, by
        BuildKit's names; those of one build, if its user allows it. `limits` are the most that each of them gets,
        `remains` what failed steps have left. Of `most_removed` steps at most files are still being removed."""
        self._most_removed = most_removed
        self._paths = paths
        self._files = files
        self._mounts = mounts
        self._networks = networks
        self._runtimes = runtimes
        self._foreground = foreground
        self._host = host
        self._defaults = defaults
        self._entitlements = entitlements
        self._limits = limits
        self._remains = remains
        self._filters = CompiledFilters()
        self._spares = Spares(foreground, paths.bundle)
        self._tasks = Tasks()
        self._removals = Tasks()

    async def close(self) -> None:
        """Wait for removals to end, and close the spare runtimes, when no step runs any more."""
        await self._removals.join()
        await self._spares.close()

    def reload(self, defaults: ContainerDefaults) -> None:
        """Steps from now on get these."""
        self._defaults = defaults

    def begin_anew(self, caches: Mapping[str, bool]) -> None:
        """Let steps from now on begin with nothing in these cache mounts."""
        self._mounts.begin_anew(caches)

    async def run(
        self,
        body: Exec,
        inputs: Sequence[str],
        watcher: Customer,
        platform: Platform | None = None,
        layered: bool = False,
        followed: bool = True,
    ) -> list[str]:
        """Run a process on stacks; the stacks that it leaves, by the numbers of its outputs. StepFailed if it fails.

        With `layered` what it changes is going to be a layer of an image; if it is `followed`, others may come soon.
        """
        self._check_entitled(body, watcher)
        platforms.check(platform, self._host.machine, registered)
        self._foreground.expect()
        record = plan.record_of(secrets.token_hex(32), body, self._host, self._defaults, self._limits)
        made: list[str] = []
        try:
            return await self._run_prepared(record, body, inputs, watcher, layered, followed, made)
        except BaseException:
            # Whoever is cancelled hears of no outputs, also when they are there already.
            if made:
                await self._mounts.drop(made)
            raise

    async def _run_prepared(
        self,
        record: Container,
        body: Exec,
        inputs: Sequence[str],
        watcher: Customer,
        layered: bool,
        followed: bool,
        made: list[str],
    ) -> list[str]:
        """`made` gets the diffs that are kept of it."""
        async with self._mounts.prepared(body, inputs, watcher.session) as prepared:
            prepared.made = made
            record, begun = self._begun(record)

            async def run(config: bytes) -> ContainerEnd:
                if followed:
                    self._spares.prepare(self._runtime(record))
                return await begun.run(config, lambda data, stderr: watcher.log(data, stderr=stderr), record.path)

            try:
                ended = await self._run(record, body, prepared, watcher, self._files(record.id), run, followed)
            finally:
                await begun.end()
            if ended.complaint:
                watcher.log(f"{self._runtime(record).name} run failed: {ended.complaint}\n".encode(), stderr=True)
            try:
                plan.check(body, complaints.exit_code(ended.complaint) if ended.complaint else ended.status)
            except plan.StepFailed as failed:
                if self._remains is not None and watcher.session is not None:
                    left = _left(prepared, self._remains, watcher.session)
                    failed.left = await self._tasks.to_its_end(left, "keep what a failed step has left")
                raise
            return await self._tasks.to_its_end(prepared.outputs(layered=layered), "keep what a step has made")

    @asynccontextmanager
    async def held(
        self,
        body: Exec,
        inputs: Sequence[str],
        session: Session | None,
        platform: Platform | None = None,
        granted: Collection[str] = (),
    ) -> AsyncIterator[StepContainer]:
        """A file system to run processes in that somebody talks with; `body` says what is mounted, and the network.
        `granted` is what its user allows.

        What they write there is thrown away, and those that still run are ended with the block.
        """

        entitlements.check_granted(body, granted)
        entitlements.check_allowed(body, self._entitlements)
        platforms.check(platform, self._host.machine, registered)
        self._foreground.expect()
        async with self._mounts.prepared(body, inputs, session) as prepared:
            held = StepContainer(self, body, prepared, session, granted)
            try:
                yield held
            finally:
                await held.end()

    def record_of(self, body: Exec, *, tty: bool) -> Container:
        """A container for the first of the processes of a file system that is held."""
        record = plan.record_of(secrets.token_hex(32), body, self._host, self._defaults, self._limits)
        return replace(record, config=replace(record.config, tty=tty))

    async def talk(
        self, record: Container, body: Exec, prepared: Prepared, client: Asking, files: StepRoots, streams: Streams
    ) -> ContainerEnd:
        """Run the first process: the container is there as long as it runs."""

        async def run(config: bytes) -> ContainerEnd:
            bundle = self.bundle_of(record)
            return await self._foreground.talk(bundle, record.id, self._runtime(record), streams, record.path)

        return await self._run(record, body, prepared, client, files, run)

    async def talk_beside(
        self,
        record: Container,
        body: Exec,
        prepared: Prepared,
        client: Asking,
        files: StepRoots,
        streams: Streams,
        directory: Path,
    ) -> ContainerEnd:
        """Run another process in the container of the first, which runs already."""
        self._check_entitled(body, client)
        other = replace(self.record_of(body, tty=bool(streams.console_socket)), id=record.id)

        def spec() -> bytes:
            user, wanted = self._spec_of(other, body, prepared, files, {}, ())
            files.make_directory(other.config.working_dir, user.uid, user.gid)
            return msgspec.json.encode(oci_spec(wanted, self._host.cgroup_v2)["process"])

        process = await self._in_thread(spec, "prepare a process of a build")
        runtime = self._runtime(record)
        return await self._foreground.talk_beside(directory, record.id, runtime, process, streams, other.path)

    def _check_entitled(self, body: Exec, client: Asking) -> None:
        """Forbidden for what the client's user did not allow, or the daemon allows nobody: nothing runs past this."""
        entitlements.check_granted(body, client.granted)
        entitlements.check_allowed(body, self._entitlements)

    def files_of(self, record: Container) -> StepRoots:
        return self._files(record.id)

    def bundle_of(self, record: Container) -> Path:
        return self._paths.bundle(record.id)

    async def _run(
        self,
        record: Container,
        body: Exec,
        prepared: Prepared,
        watcher: Asking,
        files: StepRoots,
        run: Callable[[bytes], Awaitable[ContainerEnd]],
        followed: bool = False,
    ) -> ContainerEnd:
        self._check_entitled(body, watcher)
        mode = record.host_config.network_mode
        draft = Draft(record)
        async with self._taking_back(draft, files, followed):
            annotations = await self._filters.annotations(seccomp_profile(record.host_config, self._host))
            draft.change(endpoints=self._networks.endpoints(mode, {}))
            network = await self._networks.connect(draft)
            prepare = functools.partial(self._prepare, draft.record, body, prepared, files, network, annotations)
            config = await self._in_thread(prepare, "prepare a step")
            serves = [_forward(watcher, agent) for agent in prepared.agents]
            async with serving(files.sockets, serves):
                return await run(config)

    def _prepare(
        self,
        record: Container,
        body: Exec,
        prepared: Prepared,
        files: StepRoots,
        network: Connected,
        annotations: dict[str, str],
    ) -> bytes:
        """Mount the root and what is in it, write the bundle: its configuration. All of it blocks."""
        hosts = plan.hosts_file(record, network)
        resolv_conf = plan.resolv_conf_file(record, network, read_ours("/etc/resolv.conf"))
        left = files.assemble(prepared.root, prepared.mounts, hosts, resolv_conf)
        user, spec = self._spec_of(record, body, prepared, files, annotations, left)
        files.make_directory(record.config.working_dir, user.uid, user.gid)
        named = bool(record.host_config.cgroup_parent)
        cgroup.make_parents(spec.cgroup_path, named=named, realtime=None, period=None)
        return files.write_bundle(oci_spec(spec, self._host.cgroup_v2))

    def _spec_of(
        self,
        record: Container,
        body: Exec,
        prepared: Prepared,
        files: StepRoots,
        annotations: dict[str, str],
        left: tuple[SpecMount, ...],
    ) -> tuple[ProcessUser, RuntimeContainer]:
        host_config = record.host_config
        user = resolve_user(record.config.user, files.text_of("/etc/passwd"), files.text_of("/etc/group"))
        devices, rules = wanted_devices(host_config)
        extras = Extras(
            devices=devices,
            annotations=annotations,
            filtered=bool(annotations) and self._runtime(record).takes_filters,
            device_rules=rules,
            block_devices=block_device_numbers(block_paths(host_config, self._host.limits.block_weight)),
        )
        env = plan.environment(body.process, prepared.env, user)
        paths = replace(self._paths.of(record.id), rootfs=files.rootfs)
        return user, plan.spec_of(record, paths, user, self._host, extras, env, left)

    @asynccontextmanager
    async def _taking_back(self, draft: Draft, files: StepRoots, followed: bool) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._tasks.to_its_end(self._release(draft, files, followed), "release a step")

    async def _release(self, draft: Draft, files: StepRoots, followed: bool) -> None:
        """One part that fails keeps no other from being given back. What nobody sees goes while the next step runs."""
        record = draft.record
        later = followed and self._removals.count < self._most_removed
        work = self._release_files(record, files.unmount if later else files.release)
        results = await asyncio.gather(work, self._networks.disconnect(draft), return_exceptions=True)
        if later and results[0] is None:
            self._removals.spawn(self._remove(record, files), "remove the files of a step")
        for error in results:
            if isinstance(error, HuskError | OSError):
                log.error("build step %s: %s", record.id[:12], error)
            elif isinstance(error, BaseException):
                raise error

    async def _remove(self, record: Container, files: StepRoots) -> None:
        try:
            await asyncio.to_thread(files.remove)
        except HuskError as error:
            log.error("build step %s: %s", record.id[:12], error)

    async def _release_files(self, record: Container, release: Callable[[], None]) -> None:
        if not await asyncio.to_thread(self._let_go, record, release):
            try:
                await self._runtime(record).delete(record.id, force=True)
            finally:
                await asyncio.to_thread(self._clear, record, release)

    def _let_go(self, record: Container, release: Callable[[], None]) -> bool:
        """In one go, as it is for nearly all: their runtime has forgotten them already. False if it has not."""
        if not self._runtime(record).forget_ended(record.id):
            return False
        self._clear(record, release)
        return True

    def _clear(self, record: Container, release: Callable[[], None]) -> None:
        parent = record.host_config.cgroup_parent
        try:
            cgroup.clear(self._paths.cgroup(record.id, parent), named=bool(parent))
        finally:
            release()

    def _begun(self, record: Container) -> tuple[Container, Begun]:
        """The runtime of a step: one that is loaded already, whose id the step gets, or one that is to be started."""
        runtime = self._runtime(record)
        if (spare := self._spares.take(runtime)) is not None:
            return replace(record, id=spare.container_id), spare
        return record, self._foreground.begin(self.bundle_of(record), record.id, runtime)

    def _runtime(self, record: Container) -> OCIRuntime:
        return self._runtimes.get(record.host_config.runtime)

    async def _in_thread(self, work: Callable[[], Made], name: str) -> Made:
        try:
            return await self._tasks.to_its_end(asyncio.to_thread(work), name)
        except OSError as error:
            raise SystemFault(f"cannot {name}: {error}") from error


async def _left(prepared: Prepared, remains: Remains, session: Session) -> list[str]:
    outputs = await prepared.outputs()
    await remains.keep(session, outputs)
    prepared.made.clear()  # they are the session's from here on
    return outputs


def _forward(watcher: Asking, agent: str) -> Serve:
    """Make a server that connects whoever comes with the client's SSH agent, as long as there is a client."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session: Session | None = watcher.session
        if session is None:
            writer.close()
            return
        await session.forward_agent(agent, reader, writer)

    return serve


class Spares:
    def __init__(self, foreground: Foreground, bundle: Callable[[str], Path], kept_for: float = _KEPT_FOR) -> None:
        self._foreground = foreground
        self._bundle = bundle
        self._kept_for = kept_for
        self._tasks = Tasks()
        self._spare: tuple[OCIRuntime, Begun] | None = None
        self._preparing = False
        self._expiry: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, runtime: OCIRuntime) -> Begun | None:
        """One for this runtime, if it is ready. It is the caller's now."""
        if self._spare is None or self._spare[0] != runtime:
            return None
        _, begun = self._spare
        self._spare = None
        self._stop_waiting()
        if begun.waits:
            return begun
        self._tasks.spawn(begun.discard(), "end a spare runtime")
        return None

    def prepare(self, runtime: OCIRuntime) -> None:
        """A step has begun to run: have one ready for the next, in the background."""
        if runtime.reads_pipes and self._spare is None and not self._preparing and not self._closed:
            self._preparing = True
            self._tasks.spawn(self._prepare(runtime), "prepare a spare runtime")

    async def close(self) -> None:
        self._closed = True
        await self._tasks.join()
        self._expire()
        await self._tasks.join()

    async def _prepare(self, runtime: OCIRuntime) -> None:
        id = secrets.token_hex(32)
        begun = self._foreground.begin(self._bundle(id), id, runtime)
        try:
            await begun.start()
        except HuskError as error:
            # The next step starts its own, and tells what is wrong.
            log.debug("no spare runtime: %s", error.message)
            await begun.discard()
            return
        finally:
            self._preparing = False
        self._spare = runtime, begun
        self._expiry = asyncio.get_running_loop().call_later(self._kept_for, self._expire)

    def _expire(self) -> None:
        self._stop_waiting()
        if self._spare is not None:
            _, begun = self._spare
            self._spare = None
            self._tasks.spawn(begun.discard(), "end a spare runtime")

    def _stop_waiting(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
