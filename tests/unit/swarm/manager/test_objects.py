"""Secrets and configs: what is refused, what is kept sealed, and who keeps one from going."""

import asyncio
import base64
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from husk.engine.model.events import Event, Events
from husk.engine.model.filters import Filters
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound, NotImplementedYet
from husk.storage.secrets.sealing import Sealer
from husk.storage.state.store import StateStore
from husk.swarm.manager.objects import Objects
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.services import (
    ClusterObject,
    ContainerSpec,
    DriverSpec,
    ObjectSpec,
    SecretReference,
    Service,
    ServiceSpec,
    TaskSpec,
)
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import Stale
from tests.unit.swarm.state.test_records import news


class Safe:
    def __init__(self, state: StateStore, directory: Path) -> None:
        self.store = SwarmRecords.load(SqliteStore(state))
        self.happened: list[Event] = []
        events = Events()
        events.observe(self.happened.append)
        sealer = Sealer(directory / "swarm.key")
        cluster = cast(Cluster, SimpleNamespace(swarm=object()))
        self.secrets = Objects("secret", store=self.store, cluster=cluster, sealer=sealer, events=events)
        self.configs = Objects("config", store=self.store, cluster=cluster, sealer=sealer, events=events)

    async def put(self, name: str = "password", value: bytes = b"hunter2", **labels: str) -> ClusterObject:
        return await self.secrets.create(spec(name, value, labels=labels))

    async def used_by(self, name: str, record: ClusterObject) -> None:
        reference = SecretReference(secret_id=record.id, secret_name=record.name)
        template = TaskSpec(container_spec=ContainerSpec(secrets=[reference]))
        service = ServiceSpec(name=name, task_template=template)
        await self.store.save(Service(id=name * 5, version=0, created_at="", updated_at="", spec=service))


def spec(
    name: str, value: bytes, *, labels: dict[str, str] | None = None, templating: DriverSpec | None = None
) -> ObjectSpec:
    return ObjectSpec(name=name, data=base64.b64encode(value).decode(), labels=labels or {}, templating=templating)


@pytest.fixture
def safe(state: StateStore, tmp_path: Path) -> Safe:
    return Safe(state, tmp_path)


async def test_a_value_is_kept_sealed_and_given_to_who_may_have_it(safe: Safe, state: StateStore) -> None:
    made = await safe.put()
    stored = state.records("secret", ClusterObject)[made.id]
    assert b"hunter2" not in stored.sealed
    assert await safe.secrets.value(stored) == b"hunter2"
    assert [(event.type, event.action) for event in safe.happened] == [("secret", "create")]


async def test_it_is_found_by_name_by_id_and_by_the_beginning_of_that(safe: Safe) -> None:
    made = await safe.put()
    assert safe.secrets.find("password") is safe.secrets.find(made.id) is safe.secrets.find(made.id[:6]) is made
    with pytest.raises(NotFound, match="secret nothing not found"):
        safe.secrets.find("nothing")
    assert safe.configs.listing(Filters()) == [], "a secret is no config"


@pytest.mark.parametrize(
    ("wanted", "kind", "words"),
    [
        (spec("", b"x"), InvalidParameter, "name"),
        (spec("a b", b"x"), InvalidParameter, "name"),
        (spec("x", b""), InvalidParameter, "must be larger than 0"),
        (spec("x", b"x" * 500 * 1024), InvalidParameter, "less than 512000"),
        (ObjectSpec(name="x", data="?"), InvalidParameter, "base64"),
        (ObjectSpec(name="x", driver=DriverSpec(name="vault")), NotImplementedYet, "external drivers"),
        (spec("x", b"x", templating=DriverSpec(name="jinja")), InvalidParameter, "only golang"),
    ],
)
async def test_what_cannot_be_kept_is_refused(
    safe: Safe, wanted: ObjectSpec, kind: type[HuskError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        await safe.secrets.create(wanted)
    assert safe.store.secrets == {}


async def test_a_name_is_given_once(safe: Safe) -> None:
    await safe.put()
    with pytest.raises(Conflict, match="AlreadyExists"):
        await safe.put()


async def test_nothing_but_labels_can_be_changed(safe: Safe) -> None:
    made = await safe.put()
    for other in (spec("other", b"hunter2"), spec("password", b"hunter3")):
        with pytest.raises(InvalidParameter, match="only updates to Labels are allowed"):
            await safe.secrets.update("password", made.version, other)
    with pytest.raises(InvalidParameter, match="update out of sequence"):
        await safe.secrets.update("password", made.version + 1, spec("password", b"hunter2"))
    before = made.version
    await safe.secrets.update("password", before, ObjectSpec(name="password", labels={"a": "1"}))
    changed = safe.secrets.find("password")
    assert changed.labels == {"a": "1"} and changed.version > before


async def test_one_that_services_use_stays(safe: Safe) -> None:
    made = await safe.put()
    await safe.used_by("web", made)
    await safe.used_by("api", made)
    with pytest.raises(InvalidParameter, match="is in use by the following services: api, web"):
        await safe.secrets.remove("password")
    other = await safe.put("other")
    await safe.secrets.remove("other")
    assert set(safe.store.secrets) == {made.id} and other.id not in safe.store.secrets


async def test_one_that_a_service_of_another_manager_begins_to_use_stays(safe: Safe) -> None:
    made, unused = await safe.put(), await safe.put("unused")
    safe.store.shared = True
    other = SwarmRecords(safe.store.store)
    other.take_in(await news(safe.store.store))
    other.shared = True
    reference = SecretReference(secret_id=made.id, secret_name=made.name)
    wanted = ServiceSpec(name="web", task_template=TaskSpec(container_spec=ContainerSpec(secrets=[reference])))
    web = Service(id="s", version=0, created_at="", updated_at="", spec=wanted)
    await other.save(web, alone="service")
    removing = asyncio.gather(safe.secrets.remove("password"), safe.secrets.remove("unused"), return_exceptions=True)
    await asyncio.sleep(0)
    assert made.id in safe.store.secrets, "the first try went by what nobody had told here"
    safe.store.take_in(await news(safe.store.store))
    refused, done = await removing
    assert isinstance(refused, InvalidParameter) and "in use by the following service: web" in refused.message
    assert done is None and set(safe.store.secrets) == {made.id} and unused.id not in safe.store.secrets
    with pytest.raises(Stale, match="guard"):
        await other.save(Service(id="t", version=0, created_at="", updated_at="", spec=wanted), alone="service")


async def test_a_service_may_only_ask_for_what_is_there(safe: Safe) -> None:
    made = await safe.put()
    known = SecretReference(secret_id=made.id, secret_name="password")
    safe.secrets.check_references(ContainerSpec(secrets=[known]))
    safe.secrets.check_references(None)
    gone = [SecretReference(secret_id="x", secret_name="a"), SecretReference(secret_id="y", secret_name="b")]
    with pytest.raises(InvalidParameter, match="secrets not found: a, b"):
        safe.secrets.check_references(ContainerSpec(secrets=gone))


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"name": ["pass"]}, {"password"}),
        ({"names": ["pass"]}, set()),
        ({"names": ["password", "token"]}, {"password", "token"}),
        ({"label": ["team=a"]}, {"token"}),
    ],
)
async def test_filters_choose(safe: Safe, filters: dict[str, list[str]], names: set[str]) -> None:
    await safe.put("password")
    await safe.put("token", team="a")
    assert {record.name for record in safe.secrets.listing(Filters(filters))} == names


async def test_with_the_swarm_they_go(safe: Safe, state: StateStore) -> None:
    await safe.put()
    await safe.secrets.clear()
    assert state.records("secret", ClusterObject) == {}
