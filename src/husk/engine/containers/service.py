"""Operations on containers: the engine's answer to every container operation of the edge."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from husk.aio import threads
from husk.config import ContainerDefaults
from husk.engine.containers.attach import Attachment
from husk.engine.containers.drivers import Assembly, Console, bundle_of
from husk.engine.containers.index import ContainerIndex, Exit, Instance, Publish
from husk.engine.containers.lifecycle import Lifecycle
from husk.engine.containers.listing import select
from husk.engine.containers.pause import Pauser
from husk.engine.containers.remove import ContainerRemover
from husk.engine.containers.shared_files import files_of
from husk.engine.containers.stop import Stopper
from husk.engine.images.service import Images
from husk.engine.logs import options as log_options
from husk.engine.logs.read import AsRecords, Form, read_log
from husk.engine.logs.readers import Readers
from husk.engine.logs.records import STDERR, STDOUT, LogQuery
from husk.engine.model.clock import now_ns
from husk.engine.model.container import Container
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HostConfig
from husk.engine.model.filters import Filters
from husk.engine.model.paths import HostPaths
from husk.engine.networks.endpoints import links_after_rename, parse_links
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound, NotImplementedYet, NotModified
from husk.runtime.supervise.conmon import Monitor
from husk.watch import Watch

if TYPE_CHECKING:
    from husk.engine.containers.create import CreatedContainer, Creator

T = TypeVar("T")

CONDITIONS = ("", "not-running", "next-exit", "removed")

# Trees that one thread walks before another's turn comes.
_MEASURED_AT_ONCE = 50


class Containers:
    def __init__(
        self,
        *,
        index: ContainerIndex,
        creator: "Callable[[], Creator]",
        lifecycle: Lifecycle,
        stopper: Stopper,
        pauser: Pauser,
        remover: ContainerRemover,
        assembly: Assembly,
        images: Images,
        monitor: Monitor,
        publish: Publish,
        watch: Watch | None = None,
    ) -> None:
        self._index = index
        self._make_creator = creator
        self._lifecycle = lifecycle
        self._stopper = stopper
        self._pauser = pauser
        self._remover = remover
        self._assembly = assembly
        self._images = images
        self._monitor = monitor
        self._publish = publish
        self._readers = Readers()
        self._watch = watch or Watch()

    @cached_property
    def _creator(self) -> "Creator":
        """Made when it is first wanted: a start of the daemon needs nothing of what checks and plans a container."""
        return self._make_creator()

    async def create(
        self,
        name: str,
        config: ContainerConfig,
        host_config: HostConfig,
        endpoints: dict[str, EndpointRequest],
        platform: str,
        *,
        awaited: bool = False,
    ) -> "CreatedContainer":
        """`awaited` as for `start`, which must follow."""
        with self._watch.action("create", image=config.image):
            return await self._creator.create(name, config, host_config, endpoints, platform, awaited)

    def reload(self, defaults: ContainerDefaults, default_runtime: str) -> None:
        """Containers that are made from now on get these."""
        self._creator.reload(defaults, default_runtime)

    # --- looking

    def find(self, reference: str) -> Container:
        return self._index.find(reference).record

    def host_paths(self, container: Container) -> HostPaths:
        paths = self._assembly.paths
        own = files_of(container, paths, self.find)
        image = self._images.directories(container.layers)
        return HostPaths(
            resolv_conf=str(own.resolv_conf),
            hostname=str(own.hostname),
            hosts=str(own.hosts),
            log=str(paths.log(container.id)),
            lower=[str(self._assembly.mount_points.place(image)), *image],
            upper=str(own.upper),
            work=str(own.work),
            merged=str(own.rootfs),
        )

    def names(self) -> dict[str, list[str]]:
        """All names of each container by its id; those that it has by links too."""
        return self._index.names()

    def listing(self, all: bool, limit: int, filters: Filters) -> list[Container]:
        records = (instance.record for instance in self._index)

        return select(records, all, limit, filters, self.find, self._images.descendants)

    async def sizes(self, container: Container) -> tuple[int, int]:
        """(bytes in the writable layer, bytes of the whole root file system)"""
        own = await threads.trees(self._assembly.root(container.id).usage)
        return own, own + self._images.size_of_layers(container.layers)

    async def sizes_of(self, containers: Sequence[Container]) -> list[tuple[int, int]]:
        """The same of many, with one way to a thread and back for each few dozens of them."""
        own: list[int] = []
        for begin in range(0, len(containers), _MEASURED_AT_ONCE):
            own += await threads.trees(self._own_sizes, containers[begin : begin + _MEASURED_AT_ONCE])
        below = {layers: self._images.size_of_layers(layers) for layers in {tuple(each.layers) for each in containers}}
        return [(size, size + below[tuple(each.layers)]) for size, each in zip(own, containers, strict=True)]

    def _own_sizes(self, containers: Sequence[Container]) -> list[int]:
        return [self._assembly.root(container.id).usage() for container in containers]

    # --- making

    async def rename(self, reference: str, name: str) -> None:
        instance = self._index.find(reference)
        async with instance.lock:
            self._require_present(instance, reference)
            old = instance.record.name
            if not name:
                raise InvalidParameter("Neither old nor new names may be empty")
            if name.removeprefix("/") == old:
                raise InvalidParameter("Renaming a container with the same name as its current name")
            try:
                taken = self._index.reserve_name("/" + name.removeprefix("/"), instance.id)
            except HuskError as error:
                raise type(error)(f"Error when allocating new name: {error.message}") from None
            await self._index.rename(instance, taken)
        await self._rename_in_links(old, taken)
        self._publish(instance.record, "rename", oldName="/" + old)

    async def _rename_in_links(self, old: str, new: str) -> None:
        for other in self._index:
            if not other.record.host_config.links or other.record.host_config.network_mode != "bridge":
                continue
            async with other.lock:
                links = other.record.host_config.links or []
                renamed = links_after_rename(links, old, new)
                if renamed != links and self._index.present(other):
                    await self._index.save(other, _with_links(other.draft.record, renamed))

    # --- living

    async def start(self, reference: str, *, awaited: bool = False) -> None:
        """`awaited` says that it runs for somebody who waits for its end, and is of no use without him."""
        await self._lifecycle.start(self._index.find(reference), awaited)

    async def stop(self, reference: str, timeout: int | None, signal: str) -> None:
        await self._stopper.stop(self._index.find(reference), timeout, signal)

    async def restart(self, reference: str, timeout: int | None, signal: str) -> None:
        instance = self._index.find(reference)
        with instance.kept():
            with contextlib.suppress(NotModified):
                await self._stopper.stop(instance, timeout, signal)
            with contextlib.suppress(NotModified):  # somebody else was faster
                await self._lifecycle.start(instance)
        self._publish(instance.record, "restart")

    async def kill(self, reference: str, signal: str) -> None:
        try:
            await self._stopper.kill(self._index.find(reference), signal)
        except (Conflict, InvalidParameter, NotFound) as error:
            raise type(error)(f"cannot kill container: {reference}: {error.message}") from None

    async def pause(self, reference: str) -> None:
        await self._pauser.pause(self._index.find(reference))

    async def unpause(self, reference: str) -> None:
        await self._pauser.unpause(self._index.find(reference))

    async def remove(self, reference: str, force: bool, volumes: bool, link: bool) -> None:
        if link:
            await self._unlink(reference)
            return
        await self._remover.remove(self._index.find(reference), force, volumes)

    async def _unlink(self, reference: str) -> None:
        """Forget the link `/web/db` of the container web; it stays in what that one has until its next start."""
        name, _, alias = reference.removeprefix("/").rpartition("/")
        instance = self._index.find(name or reference)
        async with instance.lock:
            self._require_present(instance, name or reference)
            links = instance.record.host_config.links or []
            kept = [entry for entry in links if alias not in parse_links([entry])]
            if kept == links:
                raise NotFound(f"No such link: {reference}")
            await self._index.settle(instance, _with_links(instance.draft.record, kept or None))

    def watch(self, reference: str, condition: str) -> asyncio.Future[Exit]:
        """The end that `condition` asks for; it counts from this call on, also if it is awaited later."""
        if condition not in CONDITIONS:
            raise InvalidParameter(f'invalid condition: "{condition}"')
        instance = self._index.find(reference)
        state = instance.record.state
        if condition == "removed":
            return instance.removal()
        future = instance.next_exit()
        if condition != "next-exit" and not state.running:
            future.set_result(Exit(state.exit_code, state.error, state.oom_killed))
        return future

    # --- talking

    def logs(self, reference: str, query: LogQuery, form: Form[T]) -> AsyncIterator[T]:
        """Read what the container wrote, in batches, each in the form that `form` gives it."""
        instance = self._index.find(reference)
        if not (query.stdout or query.stderr):
            raise InvalidParameter("Bad parameters: you must choose at least one stream")
        config = instance.record.host_config.log_config
        if not log_options.readable(config.type, config.config):
            raise NotImplementedYet("configured logging driver does not support reading")
        return self._read_log(instance, query, form)

    def _read_log(self, instance: Instance, query: LogQuery, form: Form[T]) -> AsyncIterator[T]:
        exit = instance.next_exit() if query.follow else None

        def ended() -> bool:
            state = instance.record.state
            return state.status not in ("running", "paused", "created") or (exit is not None and exit.done())

        return read_log(
            self._assembly.paths.log(instance.id),
            query,
            form,
            ended=ended,
            exit=exit,
            readers=self._readers,
            since=lambda: None if ended() else instance.record.state.finished_at,
        )

    async def attach(
        self, reference: str, *, stdin: bool, stdout: bool, stderr: bool, logs: bool, stream: bool
    ) -> Attachment:
        instance = self._index.find(reference)
        record = instance.record
        if record.state.status == "paused":
            raise Conflict(f"container {reference} is paused, unpause the container before attach")
        if record.state.status == "restarting":
            raise Conflict(f"container {reference} is restarting, wait until the container is running")
        finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        async with instance.lock:
            record = instance.record
            if stream:
                # Else nobody would ever tell it that nothing comes.
                self._require_present(instance, reference)
            config = record.host_config.log_config
            from_log = logs and (stdout or stderr) and log_options.readable(config.type, config.config)
            # One that runs writes while we look: its log alone tells every line once, before and after this moment.
            follow = from_log and stream and record.state.status == "running"
            history = None
            if from_log:
                query = LogQuery(stdout=stdout, stderr=stderr, follow=follow, until_ns=None if follow else now_ns())
                exit = finished if follow else None
                path = self._assembly.paths.log(instance.id)
                history = read_log(path, query, AsRecords(), finished.done, exit, self._readers)
            streams = frozenset({STDOUT} if stdout else ()) | frozenset({STDERR} if stderr else ())
            attachment = Attachment(
                tty=record.config.tty,
                stdin=stdin and record.config.open_stdin,
                streams=frozenset() if follow else streams,
                history=history,
                live=stream and not follow,
                on_close=instance.switchboard.leave,
                on_detach=lambda: self._publish(instance.record, "detach"),
                ending=instance.switchboard.ending(
                    told=lambda: instance.record.has_been_manually_stopped, ended=lambda: instance.has_ended
                ),
                finished=finished,
            )
            if stream:
                if record.state.status == "running" and not instance.switchboard.connected:
                    await self._connect(instance, attachment)
                else:
                    instance.switchboard.add(attachment)
        self._publish(record, "attach")
        return attachment

    async def _connect(self, instance: Instance, attachment: Attachment) -> None:
        """The first attachment to a container that runs makes the connection that all share."""
        try:
            with instance.conflict_if_ended():
                console = await _console(instance)
        except Conflict:
            # It has just ended, which waits for our lock to be recorded: there is no more to hear but that.
            instance.switchboard.add(attachment)
            return
        instance.switchboard.add(attachment)
        instance.switchboard.connect(console)

    async def resize(self, reference: str, height: int, width: int) -> None:
        instance = self._index.find(reference)
        runs, record = await instance.runs(), instance.record
        if not runs or record.state.status == "restarting":
            raise Conflict(f"Container {record.id} is not running")
        with instance.conflict_if_ended():
            await self._monitor.resize(bundle_of(record, self._assembly.paths), height, width)
        self._publish(record, "resize", height=str(height), width=str(width))

    def _require_present(self, instance: Instance, reference: str) -> None:
        """It may have been removed while this waited for its lock; to save it would bring its record back."""
        if not self._index.present(instance):
            raise NotFound(f"No such container: {reference}")

    # --- for others in the engine

    def instance(self, reference: str) -> Instance:
        return self._index.find(reference)


async def _console(instance: Instance) -> Console:
    if (supervised := instance.supervised) is None:
        raise Conflict(f"container {instance.id} is not running")
    return await supervised.attach()


def _with_links(record: Container, links: list[str] | None) -> Container:
    return replace(record, host_config=replace(record.host_config, links=links))
