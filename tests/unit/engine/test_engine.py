"""The engine's own part, beside putting others together: late services, reloads, and leaving the host."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.config import Config, RuntimeConfig
from husk.engine.engine import Engine, _as_far_as_possible, _leave_host
from husk.engine.images.limiter import Limiter
from husk.engine.model.events import Event, Events
from husk.engine.networks.service import Networks
from husk.errors import InvalidParameter, SystemFault
from husk.tasks import Tasks
from husk.watch import Watch
from tests.unit.engine.records import container


class FakeRuntimes:
    def __init__(self) -> None:
        self.default = SimpleNamespace(name="crun")
        self.refuses: InvalidParameter | None = None

    def settings(self) -> dict[str, RuntimeConfig]:
        return {"crun": RuntimeConfig("/usr/bin/crun", ("-v",))}

    def reload(self, config: Config) -> None:
        if self.refuses is not None:
            raise self.refuses


class House:
    """An engine of doubles that write down what a reload tells them."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self.happened: list[Event] = []
        self.built = 0
        self.runtimes = FakeRuntimes()
        self.cluster = SimpleNamespace(active=False, locked=False, pending=False, worker=None)
        self.downloads, self.uploads = Limiter(1), Limiter(1)
        events = Events()
        events.observe(self.happened.append)
        parts: dict[str, Any] = {
            "config": Config(),
            "events": events,
            "containers": SimpleNamespace(reload=self.note("containers")),
            "networks": SimpleNamespace(reload=self.note("networks")),
            "system": SimpleNamespace(
                reload=self.note("system"), info=lambda: SimpleNamespace(hostname="alpha", engine_id="id")
            ),
            "builder": SimpleNamespace(change=lambda change: change(SimpleNamespace(reload=self.note("builder")))),
            "registry": SimpleNamespace(reload=self.note("registry")),
            "runtimes": self.runtimes,
            "downloads": self.downloads,
            "uploads": self.uploads,
            "services": None,
            "build_services": self.build_services,
            "watch": Watch(),
        }
        others = ("container_pruner", "execs", "images", "volumes", "parts", "assembly", "host",
                  "image_store", "nursery", "publish")  # fmt: skip
        nobody: dict[str, Any] = {name: None for name in others}
        self.engine = Engine(**parts, **nobody)

    def note(self, who: str) -> Any:
        return lambda *given: self.told.update({who: given})

    def build_services(self) -> Any:
        self.built += 1
        return SimpleNamespace(cluster=self.cluster)


@pytest.fixture
def house() -> House:
    return House()


def test_services_are_built_with_the_first_question_and_a_ping_is_none(house: House) -> None:
    assert house.engine.swarm_state == "inactive" and house.built == 0
    assert house.engine.services is house.engine.services and house.built == 1
    assert house.engine.swarm_state == "inactive"
    house.cluster.active = True
    assert house.engine.swarm_state == "active/manager"
    house.cluster.locked = True
    assert house.engine.swarm_state == "locked"
    house.cluster.pending = True
    assert house.engine.swarm_state == "pending"


async def test_a_reload_reaches_everybody_and_is_told(house: House) -> None:
    config = Config(
        labels=("a=1",), max_concurrent_downloads=3, max_concurrent_uploads=4, registry_mirrors=("http://m",)
    )
    house.engine.reload(config)
    assert house.engine.config is config
    assert house.told.keys() == {"system", "networks", "containers", "builder", "registry"}
    assert house.told["system"][1] == {"crun": RuntimeConfig("/usr/bin/crun", ("-v",))}
    for limiter, most in ((house.downloads, 3), (house.uploads, 4)):
        for _ in range(most):
            assert not limiter.locked()
            await limiter.__aenter__()
        assert limiter.locked()
    [event] = house.happened
    assert (event.type, event.action, event.actor_id) == ("daemon", "reload", "id")
    assert event.attributes["labels"] == '["a=1"]' and event.attributes["name"] == "alpha"


def test_a_reload_that_is_refused_has_not_begun(house: House) -> None:
    house.runtimes.refuses = InvalidParameter("no such runtime")
    before = house.engine.config
    with pytest.raises(InvalidParameter):
        house.engine.reload(Config(labels=("a=1",)))
    assert (house.engine.config, house.told, house.happened) == (before, {}, [])


async def test_what_cannot_be_done_at_a_start_keeps_the_daemon_from_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(error: Exception) -> None:
        raise error

    await _as_far_as_possible(fail(SystemFault("the disk is full")), "what is left of images")
    await _as_far_as_possible(fail(OSError(28, "No space left")), "note of this boot")
    assert "what is left of images: the disk is full" in caplog.text and "note of this boot" in caplog.text
    with pytest.raises(asyncio.CancelledError):
        await _as_far_as_possible(fail(asyncio.CancelledError()), "x")  # type: ignore[arg-type]


class FakeIndex(list[Any]):
    aside: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("status", "aside", "leaves"),
    [("exited", (), True), ("running", (), False), ("paused", (), False), ("exited", ("odd",), False)],
)
async def test_the_host_is_left_when_no_container_needs_it(
    monkeypatch: pytest.MonkeyPatch, status: Any, aside: tuple[str, ...], leaves: bool
) -> None:
    index = FakeIndex([SimpleNamespace(record=container(status=status))])
    index.aside = frozenset(aside)
    done: list[object] = []

    async def close(remove: bool) -> None:
        done.append(remove)

    monkeypatch.setattr("husk.runtime.assembly.cgroup.remove", done.append)
    config = Config(data_root=Path("/d"))

    async def opened() -> Networks:
        return cast(Networks, SimpleNamespace(close=close))

    await _leave_host(config, Tasks().spawn(opened(), "open networks"), cast(Any, index))
    assert done == ([True, config.cgroup_parent] if leaves else [False])


async def test_networks_that_could_not_be_opened_are_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused() -> Networks:
        raise SystemFault("no bridges here")

    done: list[object] = []
    monkeypatch.setattr("husk.runtime.assembly.cgroup.remove", done.append)
    opening = Tasks().spawn(refused(), "open networks", awaited=True)
    await _leave_host(Config(data_root=Path("/d")), opening, cast(Any, FakeIndex([])))
    assert done == [] and isinstance(opening.exception(), SystemFault)
