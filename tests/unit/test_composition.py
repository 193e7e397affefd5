"""The engine as a whole: late services, reloads, and whether a start needs a swarm."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from husk.composition import SWARM_KINDS, Engine, LateBuilder, swarm_wanted
from husk.config import Config, RuntimeConfig
from husk.engine.migrations import STEPS
from husk.engine.model.events import Event, Events
from husk.errors import InvalidParameter
from husk.storage.state.store import Change, StateStore
from husk.watch import Watch


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
        self.cluster = SimpleNamespace(active=False, locked=False, pending=False, place=None)
        events = Events()
        events.observe(self.happened.append)
        core: Any = SimpleNamespace(
            base=SimpleNamespace(config=Config(), events=events, watch=Watch()),
            host=SimpleNamespace(runtimes=self.runtimes),
            images=SimpleNamespace(service=None, reload=self.note("images")),
            networks=SimpleNamespace(reload=self.note("networks")),
            volumes=None,
            containers=SimpleNamespace(
                service=SimpleNamespace(reload=self.note("containers")),
                pruner=None,
                life=SimpleNamespace(execs=None),
                verbs=None,
            ),
            system=SimpleNamespace(
                reload=self.note("system"), info=lambda: SimpleNamespace(hostname="alpha", engine_id="id")
            ),
        )
        builder: Any = SimpleNamespace(change=lambda change: change(SimpleNamespace(reload=self.note("builder"))))
        self.engine = Engine(core, builder, self.build_swarm)

    def note(self, who: str) -> Any:
        return lambda *given: self.told.update({who: given})

    def build_swarm(self) -> Any:
        self.built += 1
        return SimpleNamespace(cluster=self.cluster)


@pytest.fixture
def house() -> House:
    return House()


def test_services_are_built_with_the_first_question_and_a_ping_is_none(house: House) -> None:
    assert house.engine.swarm_state == "inactive" and house.built == 0
    assert house.engine.swarm is house.engine.swarm and house.built == 1
    assert house.engine.swarm_state == "inactive"
    house.cluster.active = True
    assert house.engine.swarm_state == "active/manager"
    house.cluster.locked = True
    assert house.engine.swarm_state == "locked"
    house.cluster.pending = True
    assert house.engine.swarm_state == "pending"
    house.cluster.place = object()
    assert house.engine.swarm_state == "active/worker"


def test_a_reload_reaches_everybody_and_is_told(house: House) -> None:
    config = Config(labels=("a=1",), registry_mirrors=("http://m",))
    house.engine.reload(config)
    assert house.engine.config is config
    assert house.told.keys() == {"system", "networks", "containers", "builder", "images"}
    assert house.told["system"][1] == {"crun": RuntimeConfig("/usr/bin/crun", ("-v",))}
    assert house.told["images"] == (config,)
    [event] = house.happened
    assert (event.type, event.action, event.actor_id) == ("daemon", "reload", "id")
    assert event.attributes["labels"] == '["a=1"]' and event.attributes["name"] == "alpha"


def test_a_reload_that_is_refused_has_not_begun(house: House) -> None:
    house.runtimes.refuses = InvalidParameter("no such runtime")
    before = house.engine.config
    with pytest.raises(InvalidParameter):
        house.engine.reload(Config(labels=("a=1",)))
    assert (house.engine.config, house.told, house.happened) == (before, {}, [])


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = Config(data_root=tmp_path / "data", exec_root=tmp_path / "exec")
    config.data_root.mkdir()
    config.exec_root.mkdir()
    return config


def networks(*scopes: str) -> Any:
    return SimpleNamespace(listing=lambda: [SimpleNamespace(scope=scope) for scope in scopes])


def opened(config: Config) -> StateStore:
    return StateStore.open(config.data_root / "state.db", config.exec_root / "owed", STEPS)


async def test_nothing_of_a_swarm_wants_nothing(config: Config) -> None:
    state = opened(config)
    assert not await swarm_wanted(config, state, networks("local"))
    await state.add(Change("container", "a", b"{}"))
    assert not await swarm_wanted(config, state, networks())
    state.close()


@pytest.mark.parametrize("kind", SWARM_KINDS)
async def test_any_record_wants_them_readable_or_not(config: Config, kind: str) -> None:
    state = opened(config)
    await state.add(Change(kind, "a", b"no json"))
    assert await swarm_wanted(config, state, networks())
    state.close()


async def test_a_network_a_key_and_files_of_tasks_want_them(config: Config) -> None:
    state = opened(config)
    assert await swarm_wanted(config, state, networks("local", "swarm"))
    (config.data_root / "swarm.lock").touch()
    assert await swarm_wanted(config, state, networks())
    (config.data_root / "swarm.lock").unlink()
    (config.exec_root / "secrets").mkdir()
    assert not await swarm_wanted(config, state, networks())
    (config.exec_root / "secrets/task").mkdir()
    assert await swarm_wanted(config, state, networks())
    state.close()


class KindsKept:
    def __init__(self, **kept: str) -> None:
        self.kept = {kind.replace("_", "-"): {key: b"{}"} for kind, key in kept.items()}

    async def fetch_several(self, kinds: Iterable[str]) -> dict[str, dict[str, bytes]]:
        return {kind: self.kept.get(kind, {}) for kind in kinds}


class FakeBuilder:
    async def items(self) -> list[str]:
        return ["a record"]


def late(state: KindsKept, made: list[FakeBuilder]) -> Any:
    async def make() -> FakeBuilder:
        made.append(FakeBuilder())
        return made[-1]

    return LateBuilder(make, state)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [KindsKept(), KindsKept(volume="v")])
async def test_where_builds_have_kept_nothing_no_builder_is_made(state: KindsKept) -> None:
    made: list[FakeBuilder] = []
    assert await late(state, made).cache() == []
    assert made == []


@pytest.mark.parametrize("state", [KindsKept(build_record="r"), KindsKept(build_cache_mount="m")])
async def test_the_builder_tells_what_it_keeps(state: KindsKept) -> None:
    made: list[FakeBuilder] = []
    assert await late(state, made).cache() == ["a record"]
    assert len(made) == 1


async def test_a_builder_that_is_there_is_asked() -> None:
    made: list[FakeBuilder] = []
    builder = late(KindsKept(), made)
    await builder.get()
    assert await builder.cache() == ["a record"]
