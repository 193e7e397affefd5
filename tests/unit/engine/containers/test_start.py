"""The way of a container to its process: orders to the runtime, and remains of a start that cannot be."""

from typing import Any

import pytest
from msgspec.structs import replace

from husk.engine.containers.attach import Attachment
from husk.engine.containers.index import Instance
from husk.engine.containers.start import resolve_joined
from husk.engine.model.container import Container, MountPoint
from husk.engine.model.container_config import (
    ContainerConfig,
    DeviceMapping,
    DeviceRequest,
    HostConfig,
    LogConfig,
    ThrottleDevice,
)
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound, Unavailable
from husk.kernel.lean_mounts import Bring, Copies
from husk.runtime.assembly import sources
from husk.runtime.oci import OCIRuntime
from husk.runtime.supervise.conmon import Apart, Bundle
from tests.support.but import but
from tests.support.drivers import FakeMonitor, FakeSupervised
from tests.support.room import Room
from tests.unit.engine.records import container


def told(room: Room, instance: Instance) -> Any:
    """The document that the runtime was given."""
    return room.host.assembly.configs[instance.id]


def namespaces(room: Room, instance: Instance) -> dict[str, str]:
    return {one["type"]: one.get("path", "") for one in told(room, instance)["linux"]["namespaces"]}


def shm(room: Room, instance: Instance) -> str:
    (found,) = (mount["source"] for mount in told(room, instance)["mounts"] if mount["destination"] == "/dev/shm")
    return str(found)


async def refusal(room: Room, record: Container, kind: type[HuskError]) -> str:
    """Return the reason why it does not start; nothing is left of the attempt."""
    before = set(room.host.held)
    instance = await room.add(record)
    with pytest.raises(kind) as caught:
        await room.lifecycle.start(instance)
    assert room.host.held == before
    assert instance.record.state.pid == 0
    return caught.value.message.replace(record.id, "ID")


async def test_the_runtime_is_told_the_command_its_root_and_its_directory(room: Room) -> None:
    instance = await room.started(container(config=ContainerConfig(working_dir="/srv", env=["A=1"], hostname="web")))
    document = told(room, instance)
    assert document["process"]["args"] == ["true"]
    assert document["process"]["cwd"] == "/srv"
    assert "A=1" in document["process"]["env"]
    assert document["hostname"] == "web"
    assert document["root"]["path"] == str(room.host.paths.of(instance.id).rootfs)


async def test_the_user_is_looked_up_in_the_image(room: Room) -> None:
    record = container(config=ContainerConfig(user="me"))
    files = room.host.assembly.root(record.id).files
    files["/etc/passwd"] = "me:x:7:8::/home/me:/bin/sh\n"
    instance = await room.started(record)
    user = told(room, instance)["process"]["user"]
    assert (user["uid"], user["gid"]) == (7, 8)


async def test_a_user_that_the_image_does_not_know_starts_nothing(room: Room) -> None:
    message = await refusal(room, container(config=ContainerConfig(user="nobody-here")), InvalidParameter)
    assert "nobody-here" in message


async def test_devices_that_no_driver_selects_start_nothing(room: Room) -> None:
    wanted = DeviceRequest(driver="nvidia", capabilities=[["gpu", "utility"]])
    message = await refusal(room, container(host_config=HostConfig(device_requests=[wanted])), InvalidParameter)
    assert message == 'could not select device driver "nvidia" with capabilities: [[gpu utility]]'


@pytest.mark.parametrize(
    "wish",
    [
        {"devices": [DeviceMapping(path_on_host="/hung/fuse")]},
        {"blkio_device_read_bps": [ThrottleDevice(path="/hung/fuse", rate=1)]},
    ],
)
async def test_a_device_whose_path_does_not_answer_is_told_so(room: Room, wish: dict[str, Any]) -> None:
    room.host.assembly.silent.add("/hung/fuse")
    message = await refusal(room, container(host_config=HostConfig(**wish)), Unavailable)
    assert message == "/hung/fuse does not answer"


async def test_devices_are_found_by_their_names(room: Room) -> None:
    wanted = [DeviceMapping(path_on_host="/dev/null", path_in_container="/dev/nothing", cgroup_permissions="r")]
    instance = await room.started(container(host_config=HostConfig(devices=wanted)))
    linux = told(room, instance)["linux"]
    assert [(one["path"], one["major"], one["minor"]) for one in linux["devices"]] == [("/dev/nothing", 1, 3)]
    rules = [one for one in linux["resources"]["devices"] if (one.get("major"), one.get("access")) == (1, "r")]
    assert len(rules) == 1
    message = await refusal(room, container("other", host_config=HostConfig(devices=[
        DeviceMapping(path_on_host="/dev/no-such")])), InvalidParameter)  # fmt: skip
    assert message.endswith("no such file or directory")


# --- namespaces of other containers


async def test_a_container_joins_the_processes_of_one_that_runs(room: Room) -> None:
    donor = await room.started(container("donor"))
    instance = await room.started(container(host_config=HostConfig(pid_mode=f"container:{donor.id}")))
    assert namespaces(room, instance)["pid"] == f"/proc/{donor.record.state.pid}/ns/pid"


async def test_one_that_has_ended_cannot_be_joined(room: Room) -> None:
    donor = await room.add(container("donor"))
    message = await refusal(room, container(host_config=HostConfig(pid_mode="container:donor")), HuskError)
    assert message == f"failed to join PID namespace: container {donor.id} is not running"
    message = await refusal(room, container(host_config=HostConfig(ipc_mode="container:donor")), Conflict)
    assert message == f"failed to join IPC namespace: container {donor.id} is not running"


async def test_one_that_is_gone_is_not_reported_as_if_the_new_one_were(room: Room) -> None:
    message = await refusal(room, container(host_config=HostConfig(ipc_mode="container:gone")), InvalidParameter)
    assert message == "failed to join IPC namespace: No such container: gone"


async def test_memory_is_shared_with_one_that_lets_others(room: Room) -> None:
    donor = await room.started(container("donor", host_config=HostConfig(ipc_mode="shareable", shm_size=1 << 20)))
    assert f"shm {donor.id}" in room.host.held
    instance = await room.started(container(host_config=HostConfig(ipc_mode="container:donor")))
    assert shm(room, instance) == shm(room, donor) == str(room.host.paths.shm(donor.id))
    assert f"shm {instance.id}" not in room.host.held, "it has none of its own"


async def test_of_the_hosts_memory_a_guest_of_the_guest_has_the_same(room: Room) -> None:
    await room.started(container("donor", host_config=HostConfig(ipc_mode="host")))
    instance = await room.started(container(host_config=HostConfig(ipc_mode="container:donor")))
    assert shm(room, instance) == "/dev/shm"


async def test_private_memory_is_not_shared(room: Room) -> None:
    await room.started(container("donor", host_config=HostConfig(ipc_mode="private")))
    message = await refusal(room, container(host_config=HostConfig(ipc_mode="container:donor")), InvalidParameter)
    assert "non-shareable IPC" in message


async def test_ids_are_written_for_names_which_may_change(room: Room) -> None:
    donor = await room.add(container("donor"))

    def find(reference: str) -> Container:
        return room.index.find(reference).record

    wanted = HostConfig(pid_mode="container:donor", ipc_mode="private")
    wanted = resolve_joined(wanted, find)
    assert (wanted.pid_mode, wanted.ipc_mode) == (f"container:{donor.id}", "private")
    with pytest.raises(NotFound):
        resolve_joined(HostConfig(ipc_mode="container:gone"), find)


def source_of(room: Room, instance: Instance, destination: str) -> str:
    (found,) = (mount["source"] for mount in told(room, instance)["mounts"] if mount["destination"] == destination)
    return str(found)


async def test_what_is_bound_is_brought_to_where_the_container_is_made(room: Room) -> None:
    volume = f"{room.host.paths.volumes}/v/_data"
    points = [
        MountPoint(type="bind", source="/etc", destination="/data"),
        MountPoint(type="volume", name="v", source=volume, destination="/v"),
        MountPoint(type="volume", name="v", source=f"{volume}/part", subpath="part", destination="/part"),
    ]
    record = container(host_config=HostConfig(ipc_mode="private"))
    record = but(record, mounts=points)
    instance = await room.started(record)
    apart = room.host.monitor.apart[instance.id]
    place = f"{room.host.paths.bundle(instance.id)}/bound-0"
    assert apart is not None and Bring("/etc", place) in apart.copies.brought
    own = (volume, str(room.host.paths.staging(instance.id) / "2"))
    assert {Bring(path, path) for path in own} <= set(apart.copies.brought)
    assert (source_of(room, instance, "/data"), source_of(room, instance, "/v")) == (place, volume)
    assert apart.otherwise is not None
    apart.otherwise()
    assert source_of(room, instance, "/data") == "/etc"


@pytest.mark.parametrize(("source", "propagation"), [("/", ""), ("/srv", "rslave"), ("/srv", "rshared")])
async def test_what_the_host_mounts_later_is_seen_by_a_container_among_its_mounts(
    room: Room, source: str, propagation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "make_ready", lambda *_, **__: None)
    point = MountPoint(type="bind", source=source, destination="/x", propagation=propagation)
    record = container(host_config=HostConfig(ipc_mode="private"))
    record = but(record, mounts=[point])
    instance = await room.started(record)
    assert room.host.monitor.apart[instance.id] is None
    assert source_of(room, instance, "/x") == source


async def test_nothing_is_brought_where_no_container_can_be_made_apart(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(copies: Copies) -> None:
        raise AssertionError("nobody needs these copies")

    monkeypatch.setattr(Copies, "make", make)
    room.host.monitor.makes_apart = False
    record = container(host_config=HostConfig(ipc_mode="private"))
    record = but(record, mounts=[MountPoint(type="bind", source="/etc", destination="/data")])
    instance = await room.started(record)
    assert room.host.monitor.apart[instance.id] is None and source_of(room, instance, "/data") == "/etc"


class AskedKeeper:
    """It is asked, and leaves the container to a monitor."""

    def __init__(self, monitor: FakeMonitor) -> None:
        self.asked: list[str] = []
        self._monitor = monitor

    async def create(self, bundle: Bundle, runtime: OCIRuntime, *, apart: Apart | None = None) -> FakeSupervised:
        self.asked.append(bundle.container_id)
        return await self._monitor.create(bundle, runtime, apart=apart)


AWAITED = HostConfig(auto_remove=True, ipc_mode="private", log_config=LogConfig(type="none"))


@pytest.mark.parametrize(
    ("config", "host_config", "awaited", "attached", "asked"),
    [
        (ContainerConfig(), AWAITED, True, True, True),
        (ContainerConfig(), AWAITED, False, True, False),
        (ContainerConfig(), AWAITED, True, False, False),
        (ContainerConfig(tty=True), AWAITED, True, True, False),
        (ContainerConfig(), replace(AWAITED, auto_remove=False), True, True, False),
        (ContainerConfig(), replace(AWAITED, log_config=LogConfig(type="json-file")), True, True, False),
        (ContainerConfig(), replace(AWAITED, pid_mode="host"), True, True, False),
    ],
)
async def test_one_that_somebody_waits_for_needs_no_monitor(
    room: Room, config: ContainerConfig, host_config: HostConfig, awaited: bool, attached: bool, asked: bool
) -> None:
    keeper = AskedKeeper(room.host.monitor)
    room.lifecycle._starter()._keeper = keeper
    instance = await room.add(container(config=config, host_config=host_config))
    if attached:
        instance.switchboard.add(attachment_of(instance))
        with pytest.raises(InvalidParameter, match="nobody talks to this container"):
            await room.lifecycle.start(instance, awaited)
    else:
        await room.lifecycle.start(instance, awaited)
    assert keeper.asked == [instance.id] * asked


def attachment_of(instance: Instance) -> Attachment:
    return Attachment(
        tty=False,
        stdin=False,
        streams=frozenset({1, 2}),
        history=None,
        live=True,
        on_close=instance.switchboard.leave,
        on_detach=lambda: None,
    )
