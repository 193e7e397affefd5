"""Answers that are kept: always what a fresh one would be, and no more of them than there is room for."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec import inspect

from husk.api.calls import encoded
from husk.api.calls.encoded import EncodedAnswers, KeptAnswers
from husk.api.versioning import CURRENT, MINIMUM, Version
from husk.engine.model.container import Container, Endpoint, Health, HealthResult, MountPoint, State, changes
from husk.engine.model.container_config import (
    ContainerConfig,
    EndpointRequest,
    ExecConfig,
    HealthConfig,
    HostConfig,
    LogConfig,
    Mount,
    RestartPolicy,
)
from husk.engine.model.filters import Filters
from husk.errors import NotFound
from husk.network.ports import PublishedPort
from tests.support.but import but
from tests.unit.api.fake_engine import NOW, FakeEngine, container, image

BEGUN = 1_767_323_045.0  # what NOW says


class Clock:
    def __init__(self) -> None:
        self.now = BEGUN + 300.5

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.time", clock.time)
    return clock


class Desk:
    """An engine, the answers kept of it, and what they would be without keeping."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.kept = EncodedAnswers(self.engine)  # type: ignore[arg-type]

    def all(self, answers: EncodedAnswers, version: Version = CURRENT) -> list[bytes]:
        names = list(self.engine.containers.records)
        return [
            *(answers.container(name, version) for name in names),
            *(answers.containers(all, 0, Filters(), version) for all in (False, True)),
            answers.containers(True, 0, Filters({"label": ["x"]}), version),
            *(answers.image(name, version) for name in self.engine.images.records),
            answers.images(False, Filters(), version),
            answers.images(True, Filters({"dangling": ["false"]}), version),
        ]

    def check(self, version: Version = CURRENT) -> list[bytes]:
        shown = self.all(self.kept, version)
        assert shown == self.all(EncodedAnswers(self.engine), version)  # type: ignore[arg-type]
        assert shown == self.all(self.kept, version)
        return shown


@pytest.fixture
def desk(clock: Clock) -> Desk:
    return Desk()


def full() -> Container:
    """A record in which every part is there."""
    return container(
        "web",
        config=ContainerConfig(
            image="busybox", labels={"a": "b"}, env=["A=b"], healthcheck=HealthConfig(test=["CMD", "true"])
        ),
        host_config=HostConfig(network_mode="bridge", links=["/db:/web/db"], annotations={"c": "d"}),
        state=State(
            status="running",
            started_at=NOW,
            health=Health(log=[HealthResult(start=NOW, end=NOW, exit_code=0, output="")]),
        ),
        endpoints={"bridge": Endpoint(network_name="bridge", network_id="n" * 64, ip_address="10.0.0.2")},
        mounts=[MountPoint(type="volume", name="v", source="/v", destination="/data")],
        published=[PublishedPort("tcp", "0.0.0.0", 8080, "10.0.0.2", 80)],
        sandbox_path="/run/netns/x",
    )


Put = Callable[[Any], None]


class Place(NamedTuple):
    """A field of a record or of one of its parts: its path, the part that has it, its name there, how to set it."""

    path: str
    part: object
    name: str
    put: Put


def places(part: Any, path: str = "", put: Put | None = None) -> Iterator[Place]:
    """Every field of a record and of its parts. `put` puts another one in the place of a part that is frozen."""
    if isinstance(part, msgspec.Struct):
        for name in part.__struct_fields__:
            set_field = partial(_set_field, part, name, put if part.__struct_config__.frozen else None)
            yield Place(f"{path}.{name}", part, name, set_field)
            yield from places(getattr(part, name), f"{path}.{name}", set_field)
    elif isinstance(part, list | dict):
        for key, item in enumerate(part) if isinstance(part, list) else part.items():
            yield from places(item, f"{path}[{key}]", partial(_set_item, part, key, put))


def _set_field(part: Any, name: str, put: Put | None, value: object) -> None:
    if put is None:
        setattr(part, name, value)
    else:
        put(msgspec.structs.replace(part, **{name: value}))


def _set_item(items: Any, key: Any, put: Put | None, value: object) -> None:
    assert put is not None
    changed = items.copy()
    changed[key] = value
    put(changed)


def other(part: object, name: str) -> object:
    """A value that the field does not have."""
    value = getattr(part, name)
    if name == "status" and isinstance(part, State):
        return "paused"
    if name in ("started_at", "finished_at", "created", "start", "end"):
        return "2026-01-01T00:00:00Z"
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 10**9
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, list):
        return value[:-1] if value else OTHERS.get(name, ["x"])
    if isinstance(value, dict):
        return {} if value else OTHERS.get(name, {"x": "y"})
    if isinstance(value, msgspec.Struct):
        return OTHERS.get(name)
    return OTHERS[name]


OTHERS: dict[str, object] = {
    "exposed_ports": {"80/tcp": {}}, "volumes": {"/v": {}}, "cmd": ["x"], "entrypoint": ["x"], "on_build": ["x"],
    "stop_signal": "TERM", "stop_timeout": 3, "shell": ["sh"], "port_bindings": {"80/tcp": None}, "binds": ["a:/b"],
    "volumes_from": ["x"], "mounts": [Mount(type="bind")], "cap_add": ["ALL"], "cap_drop": ["ALL"], "dns": ["1.1.1.1"],
    "dns_options": ["x"], "dns_search": ["x"], "extra_hosts": ["a:b"], "group_add": ["1"], "security_opt": ["x"],
    "storage_opt": {"size": "1"}, "tmpfs": {"/t": ""}, "sysctls": {"a": "b"}, "masked_paths": ["/x"],
    "readonly_paths": ["/x"], "blkio_weight_device": [], "blkio_device_read_bps": [], "blkio_device_write_bps": [],
    "blkio_device_read_iops": [], "blkio_device_write_iops": [], "devices": [], "device_cgroup_rules": ["x"],
    "device_requests": [], "memory_swappiness": 1, "oom_kill_disable": True, "init": True, "pids_limit": 1,
    "ulimits": [], "ipam_config": {"a": "b"}, "links": ["/x:/web/y"], "aliases": ["x"], "driver_opts": {"a": "b"},
    "annotations": {"x": "y"}, "layers": ["sha256:x"], "endpoints": {},
    "state": State(), "config": ContainerConfig(), "host_config": HostConfig(), "log_config": LogConfig(type="none"),
    "restart_policy": RestartPolicy(name="always"), "request": EndpointRequest(aliases=["y"]),
}  # fmt: skip

PATHS = [place.path for place in places(full())]
# The answers show neither: they are what the engine has for itself, or what the docker command asks for elsewhere.
HIDDEN = {
    ".runtime", ".monitor_pid", ".monitor_started", ".has_been_manually_stopped", ".paused_for_commit",
    ".mounts[0].makes_source", ".mounts[0].recursive", ".mounts[0].readonly_recursive",
    ".mounts[0].copies", ".mounts[0].anonymous", ".mounts[0].options", ".mounts[0].layers", ".mounts[0].subpath",
    ".mounts[0].image_id",
    ".endpoints[bridge].direct", ".endpoints[bridge].host_interface", ".endpoints[bridge].interface",
    ".endpoints[bridge].added", ".config.mac_address", ".published[0].container_ip",
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_change_of_any_field_is_seen_at_once(desk: Desk, path: str) -> None:
    record = desk.engine.containers.add(full())
    before = desk.check()

    def put(changed: object) -> None:
        assert isinstance(changed, Container)
        del desk.engine.containers.records["web"]
        desk.engine.containers.add(changed)
        changes.note()

    place = next(place for place in places(record, put=put) if place.path == path)
    place.put(other(place.part, place.name))
    assert (desk.check() != before) == (path not in HIDDEN)


def test_no_field_is_forgotten_here() -> None:
    assert {".state.health.log[0].output", ".endpoints[bridge].request.aliases", ".config.labels"} <= set(PATHS)
    assert {field.name for field in inspect.type_info(HostConfig).fields} <= {p.rpartition(".")[2] for p in PATHS}  # type: ignore[attr-defined]
    assert set(PATHS) >= HIDDEN


@pytest.mark.parametrize(
    "change",
    [
        lambda engine: engine.containers.add(container("other", state=State(status="running", started_at=NOW))),
        lambda engine: engine.containers.records.pop("web"),
    ],
)
def test_containers_that_come_and_go_are_seen(desk: Desk, change: Callable[[FakeEngine], object]) -> None:
    desk.engine.containers.add(full())
    before = desk.check()
    change(desk.engine)
    changes.note()
    assert desk.check() != before


def test_a_container_s_execs_are_seen(desk: Desk) -> None:
    record = desk.engine.containers.add(full())
    assert b'"ExecIDs":null' in desk.check()[0]
    made = desk.engine.execs.add(record.id, ExecConfig())
    assert made.encode() in desk.check()[0]
    desk.engine.execs.records.clear()
    assert b'"ExecIDs":null' in desk.check()[0]


def test_images_that_change_are_seen_also_in_containers(desk: Desk) -> None:
    record = desk.engine.containers.add(full())
    desk.engine.containers.add(but(record, image_id=image().id))
    desk.check()
    desk.engine.images.records["again"] = desk.engine.images.records["busybox"]
    desk.engine.images.revision += 1
    assert b'"again:latest"' in b"".join(desk.check())
    del desk.engine.images.records["busybox"]
    desk.engine.images.revision += 1
    shown = b"".join(desk.check())
    assert b'"busybox:latest"' not in shown
    assert f'"Image":"{record.image_id}"'.encode() in shown


def test_each_version_has_its_own(desk: Desk) -> None:
    desk.engine.containers.add(full())
    assert desk.check(MINIMUM) != desk.check(CURRENT) == desk.check(CURRENT)


def test_a_container_that_is_gone_is_not_shown(desk: Desk) -> None:
    desk.engine.containers.add(full())
    desk.check()
    desk.engine.containers.records.clear()
    with pytest.raises(NotFound):
        desk.kept.container("web", CURRENT)


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (0.2, "5 minutes"),
        (59.4, "5 minutes"),
        (59.6, "6 minutes"),
        (3600, "About an hour"),
        (-400, "Less than a second"),
    ],
)
def test_the_time_passes(desk: Desk, clock: Clock, passed: float, words: str) -> None:
    desk.engine.containers.add(full())
    assert b'"Status":"Up 5 minutes (health: starting)"' in b"".join(desk.check())
    clock.now += passed
    assert f'"Status":"Up {words} (health: starting)"'.encode() in b"".join(desk.check())


def test_a_list_is_made_once_while_nothing_changes(desk: Desk, clock: Clock) -> None:
    desk.engine.containers.add(full())
    first = desk.kept.containers(False, 0, Filters(), CURRENT)
    clock.now += 0.3
    assert desk.kept.containers(False, 0, Filters(), CURRENT) is first
    assert len(desk.engine.containers.listed) == 1
    clock.now += encoded.LIST_LASTS
    assert desk.kept.containers(False, 0, Filters(), CURRENT) == first
    assert len(desk.engine.containers.listed) == 2
    assert desk.kept.container("web", CURRENT) is desk.kept.container("web", CURRENT)
    assert desk.kept.images(False, Filters(), CURRENT) is desk.kept.images(False, Filters(), CURRENT)
    assert desk.kept.image("busybox", CURRENT) is desk.kept.image("busybox", CURRENT)


def test_lists_of_none_one_and_several_are_json(desk: Desk) -> None:
    for count in range(3):
        shown = msgspec.json.decode(desk.kept.containers(True, 0, Filters(), CURRENT))
        assert [entry["Names"] for entry in shown] == [[f"/c{n}"] for n in range(count)]
        desk.engine.containers.add(container(f"c{count}"))
        changes.note()


def test_no_label_is_taken_for_the_status(desk: Desk) -> None:
    desk.engine.containers.add(
        container("web", config=ContainerConfig(image="busybox", labels={"Status": "x", "\x00": '"'}))
    )
    (shown,) = msgspec.json.decode(desk.kept.containers(True, 0, Filters(), CURRENT))
    assert (shown["Labels"], shown["Status"]) == ({"Status": "x", "\x00": '"'}, "Created")


# --- how many


def test_what_was_used_last_stays() -> None:
    alone: KeptAnswers[str] = KeptAnswers()
    alone.put(0, "stamp", "0", 100)
    kept: KeptAnswers[str] = KeptAnswers(limit=10 * alone.size)
    for number in range(10):
        kept.put(number, "stamp", str(number), 100)
    assert kept.get(0, "stamp") == "0"
    kept.put(10, "stamp", "10", 100)
    assert [kept.get(number, "stamp") for number in (0, 1, 2, 10)] == ["0", None, "2", "10"]
    assert kept.size <= 10 * alone.size


def test_another_stamp_means_gone() -> None:
    kept: KeptAnswers[str] = KeptAnswers()
    kept.put("key", 1, "one", 3)
    assert kept.get("key", 2) is None
    assert (kept.get("key", 1), kept.size) == (None, 0)


def test_what_would_push_all_others_out_is_not_kept() -> None:
    kept: KeptAnswers[str] = KeptAnswers(limit=10_000)
    kept.put("small", 1, "one", 3)
    assert kept.put("large", 1, "answer", 5000) == "answer"
    assert (kept.get("large", 1), kept.get("small", 1)) == (None, "one")


def test_putting_again_counts_once() -> None:
    kept: KeptAnswers[str] = KeptAnswers()
    kept.put("key", 1, "one", 3)
    once = kept.size
    for _ in range(3):
        kept.put("key", 1, "one", 3)
    assert kept.size == once > 3
