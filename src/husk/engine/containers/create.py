"""Create a container: check the request, resolve its image, take id and name, make volumes, write the record.

Nothing stays mounted, and no process is there before `start`.
"""

import asyncio
import contextlib
import socket

from msgspec import Struct
from msgspec.structs import replace

from husk.config import ContainerDefaults
from husk.engine.containers.config import merge, validate
from husk.engine.containers.config.spec import Extras, block_paths, plan
from husk.engine.containers.drivers import Assembly, Monitor, Runtimes
from husk.engine.containers.index import ContainerIndex, Publish
from husk.engine.containers.mounts import MountTaker
from husk.engine.containers.start import resolve_joined
from husk.engine.host import EngineHost
from husk.engine.images.service import Images
from husk.engine.images.store import Pins
from husk.engine.logs import drivers as log_drivers
from husk.engine.logs import options as log_options
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.container import Container
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HostConfig, LogConfig
from husk.engine.networks.endpoints import parse_links
from husk.engine.networks.requests import HOST_WITH_LINKS
from husk.engine.networks.service import Networks
from husk.engine.volumes.service import Taking, Volumes
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound
from husk.runtime.spec import capabilities
from husk.runtime.spec.users import ProcessUser


class CreatedContainer(Struct, frozen=True):
    container: Container
    warnings: list[str]


class Creator:
    def __init__(
        self,
        *,
        index: ContainerIndex,
        assembly: Assembly,
        images: Images,
        pins: Pins,
        networks: Networks,
        volumes: Volumes,
        mounts: MountTaker,
        monitor: Monitor,
        runtimes: Runtimes,
        host: EngineHost,
        publish: Publish,
        log_default: LogConfig,
        defaults: ContainerDefaults,
        keeps: bool = False,
    ) -> None:
        """With `keeps` what somebody waits for ends with the engine."""
        self._index = index
        self._assembly = assembly
        self._images = images
        self._pins = pins
        self._networks = networks
        self._volumes = volumes
        self._mounts = mounts
        self._monitor = monitor
        self._runtimes = runtimes
        self._host = host
        self._publish = publish
        self._log_default = log_default
        self._defaults = defaults
        self._keeps = keeps

    def reload(self, defaults: ContainerDefaults, default_runtime: str) -> None:
        """Containers that are made from now on get these."""
        self._defaults = defaults
        self._host = replace(self._host, default_runtime=default_runtime)

    async def create(
        self,
        name: str,
        config: ContainerConfig,
        host_config: HostConfig,
        endpoints: dict[str, EndpointRequest],
        platform: str,
        awaited: bool = False,
    ) -> CreatedContainer:
        """Validate, resolve the image, take id and name, make volumes, write the record. Nothing stays mounted.

        `awaited` as for `Lifecycle.start`, which must follow.
        """
        if not config.image:
            raise InvalidParameter("no image specified")
        await validate.check_aside(config, host_config, endpoints)
        capabilities.resolve(host_config.cap_add, host_config.cap_drop, host_config.privileged)
        if host_config.runtime:
            self._runtimes.get(host_config.runtime)
        if host_config.init and not self._host.init_path:
            raise InvalidParameter("HostConfig.Init needs an init program on the host: install tini")
        image = self._images.find_for_container(config.image, platform)
        # Most are started at once.
        self._monitor.expect()
        complete = merge.merge_config(config, image.config)
        validate.check_image(complete)
        percent = host_config.cpu_percent
        host_config = merge.complete_host_config(host_config, self._host, self._log_default, self._defaults)
        log_options.check(host_config.log_config.type, host_config.log_config.config)
        try:
            host_config = resolve_joined(host_config, self._find)
        except NotFound as error:
            raise InvalidParameter(error.message) from None
        container_id = self._index.new_id()
        complete = replace(complete, hostname=complete.hostname or _default_hostname(host_config, container_id))
        program, arguments = merge.command(complete)
        created = now_ns()
        mode = host_config.network_mode
        if mode.startswith("container:"):
            # As with networks, an unknown one is reported at start.
            with contextlib.suppress(NotFound):
                mode = "container:" + self._find(mode.removeprefix("container:")).id
                host_config = replace(host_config, network_mode=mode)
        taken = self._index.reserve_name(name, container_id)
        links = host_config.links
        try:
            record = Container(
                id=container_id,
                name=taken,
                created=rfc3339(created),
                created_ns=created,
                image_id=image.id,
                config=complete,
                host_config=host_config,
                path=program,
                args=arguments,
                layers=image.chain_ids,
                runtime=host_config.runtime,
            )
            await log_drivers.check(record, self._assembly.touch)
            for network in (mode, *endpoints):
                # As with those that are not there, what is wrong is reported at start.
                with contextlib.suppress(HuskError):
                    await self._networks.seek(network)
            places = self._networks.endpoints(mode, endpoints, links)
            if links and mode == "bridge":
                host_config = replace(host_config, links=self._named_links(taken, links))
            async with self._pins.hold(record.layers), self._volumes.taking() as taking:
                mounts = await self._mounts.take(record.id, complete, host_config, taking)
                record = replace(record, host_config=host_config, endpoints=places, mounts=mounts)
                async with self._pins.hold(record.used_layers):
                    # A run tells of how it ended; what this host cannot do of it is not waited for.
                    warnings = [] if awaited else self._warnings(record)
                    if awaited and self._keeps and _leaves_nothing(record):
                        self._index.add_fleeting(record)
                        taking.done()
                    else:
                        await self._write(record, taking)
        except BaseException:
            self._index.release_name(taken)
            raise
        self._publish(record, "create")
        if mode == "host" and host_config.port_bindings:
            warnings.append("Published ports are discarded when using host network mode")
        if not platform and (foreign := self._images.warning_about(image)):
            warnings.append(foreign)
        if percent:
            warnings.append("linux does not support CPU percent. Percent discarded.")
        return CreatedContainer(record, warnings)

    def _named_links(self, name: str, links: list[str]) -> list[str]:
        """Links on the default bridge as dockerd shows them: `/db:/web/alias`."""
        found = []
        for alias, target in parse_links(links).items():
            try:
                other = self._find(target)
                owner = self._networks.owner(other)
            except (NotFound, Conflict) as error:
                raise InvalidParameter(f"could not get container for {target}: {error.message}") from None
            if owner.host_config.network_mode == "host":
                raise InvalidParameter(HOST_WITH_LINKS)
            found.append(f"/{other.name}:/{name}/{alias}")
        return found

    def _warnings(self, record: Container) -> list[str]:
        # The devices may appear until it starts; what this host can limit is known now.
        extras = Extras(block_devices=dict.fromkeys(block_paths(record.host_config), (0, 0)))
        return plan(record, self._assembly.paths.of(record.id), ProcessUser(), self._host, extras)[1]

    async def _write(self, record: Container, taking: Taking) -> None:
        """Give a new container its directory and its volumes their first content, then write it."""
        root = self._assembly.root(record.id)
        try:
            await asyncio.to_thread(root.create)
            await self._mounts.prepare(record, taking)
            await self._index.add(record, *taking.changes)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(root.remove))
            raise
        taking.done()

    def _find(self, reference: str) -> Container:
        return self._index.find(reference).record


def _leaves_nothing(record: Container) -> bool:
    """Return True if a container has, besides its own files, nothing that would have to be taken back by its record."""
    config = record.host_config
    alone = config.network_mode == "none" and all(point.type == "tmpfs" for point in record.mounts)
    return alone and config.auto_remove


def _default_hostname(host_config: HostConfig, container_id: str) -> str:
    if host_config.network_mode == "host" or host_config.uts_mode == "host":
        return socket.gethostname()
    return container_id[:12]
