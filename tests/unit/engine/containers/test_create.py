"""A new container: what is refused before anything is made, what its record says, and what a failure leaves."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from husk.config import ContainerDefaults
from husk.engine.containers.create import Creator
from husk.engine.containers.index import publish_container
from husk.engine.containers.mounts import MountTaker
from husk.engine.images.service import Images
from husk.engine.images.store import Pins
from husk.engine.model.container import Container, Endpoint, MountPoint
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HostConfig, LogConfig, PortBinding
from husk.engine.model.events import Events
from husk.engine.model.image import Image
from husk.engine.networks.service import Networks
from husk.engine.volumes.service import Taking, Volumes
from husk.errors import Conflict, InvalidParameter, NotFound, Unavailable
from husk.storage.state.store import Change
from tests.support.but import but
from tests.support.drivers import HOST
from tests.support.room import Room
from tests.unit.engine.records import container, image


class FakeImages:
    def __init__(self) -> None:
        self.image = but(image("busybox"), config=ContainerConfig(cmd=["sh"], env=["PATH=/bin"]))
        self.foreign = ""

    def find_for_container(self, reference: str, platform: str) -> Image:
        if reference != "busybox":
            raise NotFound(f"No such image: {reference}")
        return self.image

    def warning_about(self, image: Image) -> str:
        return self.foreign


class FakeNetworks:
    async def seek(self, reference: str) -> None:
        if reference == "away":
            raise Unavailable("no manager answers")

    def owner(self, record: Container) -> Container:
        return record

    def endpoints(
        self, mode: str, requests: dict[str, EndpointRequest], links: list[str] | None
    ) -> dict[str, Endpoint]:
        return {mode: Endpoint(network_name=mode, network_id="n")}


class FakeTaking:
    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.is_done = False

    def done(self) -> None:
        self.is_done = True


class FakeVolumes:
    def __init__(self) -> None:
        self.takings: list[FakeTaking] = []

    @contextlib.asynccontextmanager
    async def taking(self) -> AsyncIterator[FakeTaking]:
        self.takings.append(FakeTaking())
        yield self.takings[-1]


class FakeMounts:
    """A double that gives no mounts; `fails` is what goes wrong when volumes get their first content."""

    def __init__(self) -> None:
        self.fails: Exception | None = None

    async def take(self, id: str, config: ContainerConfig, host_config: HostConfig, taking: Taking) -> list[MountPoint]:
        return []

    async def prepare(self, record: Container, taking: Taking) -> None:
        if self.fails is not None:
            raise self.fails


class Maker:
    def __init__(self, room: Room) -> None:
        self.room = room
        self.images, self.volumes, self.mounts = FakeImages(), FakeVolumes(), FakeMounts()
        self.events: list[str] = []
        events = Events()
        events.observe(lambda event: self.events.append(event.action))
        self.creator = Creator(
            index=room.index,
            assembly=room.host.assembly,
            images=cast(Images, self.images),
            pins=Pins(),
            networks=cast(Networks, FakeNetworks()),
            volumes=cast(Volumes, self.volumes),
            mounts=cast(MountTaker, self.mounts),
            monitor=room.host.monitor,
            runtimes=room.host.runtimes,
            host=HOST,
            publish=partial(publish_container, events),
            log_default=LogConfig(type="json-file"),
            defaults=ContainerDefaults(),
        )

    async def create(
        self, name: str = "web", config: ContainerConfig | None = None, **host_config: Any
    ) -> tuple[Container, list[str]]:
        """The container, and warnings."""
        config = config or ContainerConfig(image="busybox")
        made = await self.creator.create(name, config, HostConfig(**host_config), {}, "")
        return made.container, made.warnings

    async def refusal(self, kind: type[Exception], config: ContainerConfig | None = None, **host_config: Any) -> str:
        """Return the refusal; nothing is made, and the name is free."""
        before = len(list(self.room.index))
        with pytest.raises(kind) as caught:
            await self.create("refused", config, **host_config)
        assert len(list(self.room.index)) == before and self.events == []
        self.room.index.release_name(self.room.index.reserve_name("refused", "0" * 64))
        return str(caught.value)


@pytest.fixture
def maker(room: Room) -> Maker:
    return Maker(room)


async def test_a_container_is_its_request_completed_from_the_image_and_is_stored_before_it_is_told(
    maker: Maker, room: Room
) -> None:
    made, warnings = await maker.create()
    stored = room.stored(room.index.find("web"))
    assert stored == made and warnings == []
    assert (made.name, made.image_id, made.layers) == ("web", maker.images.image.id, maker.images.image.chain_ids)
    assert (made.path, made.args, made.config.env) == ("sh", [], ["PATH=/bin"])
    assert made.config.hostname == made.id[:12]
    assert (made.state.status, made.host_config.network_mode, made.host_config.runtime) == ("created", "bridge", "crun")
    assert set(made.endpoints) == {"bridge"}
    assert maker.events == ["create"]
    assert [taking.is_done for taking in maker.volumes.takings] == [True]
    assert room.host.held == set(), "nothing is mounted before its start"


async def test_what_cannot_be_is_refused_before_anything_is_made(maker: Maker) -> None:
    assert await maker.refusal(InvalidParameter, ContainerConfig()) == "no image specified"
    assert "No such image" in await maker.refusal(NotFound, ContainerConfig(image="nothing"))
    assert "NONSENSE" in await maker.refusal(InvalidParameter, cap_add=["NONSENSE"])
    assert "install tini" in await maker.refusal(InvalidParameter, init=True)
    assert "nonsense" in await maker.refusal(InvalidParameter, log_config=LogConfig(type="nonsense"))
    assert "No such container" in await maker.refusal(InvalidParameter, pid_mode="container:nobody")
    maker.images.image = but(maker.images.image, config__cmd=None)
    assert await maker.refusal(InvalidParameter) == "no command specified"


async def test_where_its_log_goes_is_looked_at_with_a_deadline(maker: Maker, room: Room, tmp_path: Path) -> None:
    def to(path: str) -> LogConfig:
        return LogConfig(type="syslog", config={"syslog-address": f"unix://{path}"})

    room.host.assembly.silent.add("/hung/log")
    assert await maker.refusal(Unavailable, log_config=to("/hung/log")) == "/hung/log does not answer"
    missing = tmp_path / "log"
    told = await maker.refusal(InvalidParameter, log_config=to(str(missing)))
    assert told == f"stat {missing}: no such file or directory"
    missing.touch()
    await maker.create(log_config=to(str(missing)))


async def test_a_name_is_taken_once(maker: Maker) -> None:
    await maker.create("web")
    with pytest.raises(Conflict, match="is already in use by container"):
        await maker.create("web")


async def test_when_its_volumes_cannot_be_filled_nothing_is_left(maker: Maker) -> None:
    maker.mounts.fails = InvalidParameter("cannot mount volume over existing file")
    assert "over existing file" in await maker.refusal(InvalidParameter)
    assert [taking.is_done for taking in maker.volumes.takings] == [False]


async def test_others_are_named_by_their_ids(maker: Maker, room: Room) -> None:
    other = await room.add(container("other"))
    made, _ = await maker.create(ipc_mode="container:other", network_mode="container:other")
    assert made.host_config.ipc_mode == made.host_config.network_mode == f"container:{other.id}"


async def test_a_network_of_somebody_unknown_is_reported_at_the_start(maker: Maker) -> None:
    made, _ = await maker.create(network_mode="container:later")
    assert made.host_config.network_mode == "container:later"


async def test_links_are_shown_as_dockerd_does(maker: Maker, room: Room) -> None:
    await room.add(container("db"))
    made, _ = await maker.create(links=["db:store"])
    assert made.host_config.links == ["/db:/web/store"]
    assert "could not get container for gone" in await maker_refusal(maker, ["gone"])
    await room.add(container("on_host", host_config=HostConfig(network_mode="host")))
    assert "host" in await maker_refusal(maker, ["on_host"])


async def maker_refusal(maker: Maker, links: list[str]) -> str:
    maker.events.clear()
    return await maker.refusal(InvalidParameter, links=links)


async def test_what_will_not_be_as_asked_is_said(maker: Maker) -> None:
    maker.images.foreign = "another platform"
    binding = {"80/tcp": [PortBinding(host_port="8080")]}
    _, warnings = await maker.create(network_mode="host", port_bindings=binding, cpu_percent=5)
    assert warnings == [
        "Published ports are discarded when using host network mode",
        "another platform",
        "linux does not support CPU percent. Percent discarded.",
    ]


async def test_settings_that_are_read_again_count_for_the_next_one(maker: Maker) -> None:
    maker.creator.reload(ContainerDefaults(default_shm_size=5 << 20), "runc")
    made, _ = await maker.create()
    assert (made.host_config.shm_size, made.host_config.runtime) == (5 << 20, "runc")


@pytest.mark.parametrize(
    ("awaited", "keeps", "host_config", "stored"),
    [
        (True, True, {"auto_remove": True, "network_mode": "none"}, False),
        (False, True, {"auto_remove": True, "network_mode": "none"}, True),
        (True, False, {"auto_remove": True, "network_mode": "none"}, True),
        (True, True, {"auto_remove": False, "network_mode": "none"}, True),
        (True, True, {"auto_remove": True, "network_mode": "bridge"}, True),
    ],
)
async def test_one_that_ends_with_the_engine_and_has_nothing_but_its_files_has_no_record(
    maker: Maker, awaited: bool, keeps: bool, host_config: dict[str, Any], stored: bool
) -> None:
    maker.creator._keeps = keeps
    made = await maker.creator.create(
        "web", ContainerConfig(image="busybox"), HostConfig(**host_config), {}, "", awaited
    )
    instance = maker.room.index.find("web")
    assert instance.record is made.container and maker.room.index.is_fleeting(instance) is not stored
    assert (maker.room.stored(instance) is not None) is stored
    assert maker.events == ["create"] and maker.volumes.takings[-1].is_done
