"""Declarations of clients: services made, changed and removed, refusals, and what a swarm leaves behind."""

import asyncio
import threading
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from husk.engine.logs.records import LogQuery
from husk.engine.model.filters import Filters
from husk.errors import Conflict, DiskFault, HuskError, InvalidParameter, NotFound, SystemFault, Unavailable
from husk.registry.auth import Credentials
from husk.storage.state.store import StateStore
from husk.swarm.ca import authority
from husk.swarm.ca.identity import Identity
from husk.swarm.manager.ca_server import CAServer
from husk.swarm.model.node import Node, NodeDescription
from husk.swarm.model.services import (
    ConfigReference,
    ContainerSpec,
    Empty,
    FileTarget,
    Mode,
    ObjectSpec,
    Replicated,
    ReplicatedJob,
    SecretReference,
    Service,
    ServiceSpec,
    TaskRestartPolicy,
    TaskSpec,
)
from husk.swarm.model.settings import JoinSettings, NodeSpec
from husk.swarm.model.swarm import Standing
from husk.swarm.port.join import JoinResult
from husk.swarm.port.messages import JoinRequest
from husk.swarm.spec import validate
from husk.swarm.spec.declared import FIRST_PORT, LAST_PORT
from husk.swarm.state.records import SwarmRecords
from husk.text.endpoints import HostPort
from tests.support.but import but
from tests.support.full_store import FullStore
from tests.unit.swarm.state.test_records import news
from tests.unit.swarm.swarm_room import FakeEntrance, SwarmRoom, port, spec, task


async def test_a_host_works_for_others_until_it_leaves(room: SwarmRoom, tmp_path: Path) -> None:
    """The manager's office admits, over no wire."""
    ca_server = CAServer(
        room.store, room.cluster, room.certificates, lambda node: None, room.node_role.manager_role.several
    )
    key, asked = authority.new_request()

    async def admitted(wish: JoinSettings, description: NodeDescription) -> JoinResult:
        request = JoinRequest(request=asked, hostname=description.hostname)
        reply = await ca_server.admit("worker", request, "192.0.2.9")
        issued = authority.look(reply.certificate)
        assert issued.holder is not None
        return JoinResult(
            Identity(reply.roots, reply.certificate, key), issued.holder, issued, (HostPort("192.0.2.1", 2377),)
        )

    entrance = FakeEntrance()
    entrance.admit = admitted
    with closing(FullStore.open(tmp_path / "other.db")) as state:
        wish = JoinSettings(["192.0.2.1"], "token", "0.0.0.0")
        (tmp_path / "other").mkdir()
        other = SwarmRoom(tmp_path / "other", state, "beta", entrance=entrance)
        with pytest.raises(Unavailable, match="already part of a swarm"):
            await room.services.node_role.join(wish)
        state.full = True
        with pytest.raises(DiskFault, match="no space left"):
            await other.services.node_role.join(wish)
        assert len(entrance.withdrawn) == 1 and not other.cluster.node_id and not list((tmp_path / "other").iterdir())
        state.full, other.worker_fails = False, asyncio.CancelledError()
        with pytest.raises(asyncio.CancelledError):
            await other.services.node_role.join(wish)
        assert len(entrance.withdrawn) == 2, "a client that leaves"
        assert not list((tmp_path / "other").iterdir()), "and it leaves nothing"
        other.worker_fails = None
        await other.services.node_role.join(wish)
        for ask in (other.services.listing, other.nodes.listing):
            with pytest.raises(Unavailable, match="Worker nodes can't be used to view or modify cluster state"):
                ask(Filters())
        assert other.services.node_role.standing() == Standing("192.0.2.9", (("", "192.0.2.1:2377"),))
        with pytest.raises(Unavailable, match="already part of a swarm"):
            await other.services.node_role.join(wish)
        await other.services.close()
        # The next daemon.
        again = SwarmRoom(tmp_path / "other", state, "beta")
        again.worker_fails = SystemFault("its certificate is gone")
        await again.services.open()
        assert again.services.node_role.standing() == Standing("", (("", "192.0.2.1:2377"),), "its certificate is gone")
        again.worker_fails = None
        await again.services.open()
        assert again.cluster.node_id == other.cluster.node_id and again.cluster.node_id in room.store.nodes
        assert again.removed == 0
        last = SwarmRoom(tmp_path / "other", state, "beta")
        last.worker_fails = SystemFault("its certificate is gone")
        last.remove_fails = SystemFault("a container stays")
        await last.services.open()
        with pytest.raises(SystemFault, match="a container stays"):
            await last.services.leave(force=False)
        assert last.cluster.node_id, "it can be tried again"
        last.remove_fails = None
        await last.services.leave(force=False)
        assert last.removed == 2 and last.services.node_role.standing() is None and not last.cluster.node_id
        assert not list((tmp_path / "other").iterdir())
    assert room.services.node_role.standing() is None


async def made(room: SwarmRoom, wanted: ServiceSpec) -> Service:
    return await room.services.create(wanted, None)


async def changed(room: SwarmRoom, service: Service, wanted: ServiceSpec, *, rollback: bool = False) -> Service:
    now = room.services.find(service.id)
    await room.services.update(service.id, now.version, wanted, rollback=rollback, credentials=None)
    return room.services.find(service.id)


async def test_a_service_is_kept_told_and_looked_after(room: SwarmRoom, state: StateStore) -> None:
    woken = room.woken
    service = await made(room, spec())
    assert room.services.find("web") is room.services.find(service.id[:6]) is service
    assert state.records("service", Service)[service.id].spec.name == "web"
    assert (room.told[-1], room.woken) == (("service", "create"), woken + 1)
    assert (await made(room, spec(""))).spec.name not in ("", "web")


async def test_a_name_is_taken_once(room: SwarmRoom) -> None:
    await made(room, spec())
    with pytest.raises(Conflict, match="service web already exists"):
        await made(room, spec())


async def test_a_declaration_is_checked_beside_the_loop(room: SwarmRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its templates may be hundreds of KiB."""
    threads, check = [], validate.check

    def checked(*given: Any) -> None:
        threads.append(threading.get_ident())
        check(*given)

    monkeypatch.setattr(validate, "check", checked)
    made = await room.services.create(spec(), None)
    await room.services.update(made.id, made.version, spec(), rollback=False, credentials=None)
    assert len(threads) == 2 and threading.get_ident() not in threads


@pytest.mark.parametrize(
    "wanted",
    [
        spec("bad name"),
        spec("web", "nowhere"),
        spec("web", "ingress"),
        spec("web", ports=[port(80), port(80, target=81)]),
        ServiceSpec(name="web"),
    ],
)
async def test_what_cannot_be_declared_changes_nothing(room: SwarmRoom, wanted: ServiceSpec) -> None:
    with pytest.raises(HuskError):
        await made(room, wanted)
    assert room.store.services == {} and ("service", "create") not in room.told


async def test_without_a_swarm_there_are_no_services(tmp_path: Path, state: StateStore) -> None:
    room = SwarmRoom(tmp_path, state)
    for ask in (lambda: room.services.listing(Filters({})), lambda: room.services.find("x"),
                lambda: room.services.tasks(Filters({})), lambda: room.services.find_task("x")):  # fmt: skip
        with pytest.raises(Unavailable, match="not a swarm manager"):
            ask()
    with pytest.raises(Unavailable):
        await made(room, spec())


async def test_a_change_needs_the_version_that_was_seen(room: SwarmRoom) -> None:
    service = await made(room, spec())
    version = service.version
    after = await changed(room, service, spec(labels={"a": "1"}))
    assert after.version > version and after.previous_spec is not None
    with pytest.raises(InvalidParameter, match="update out of sequence"):
        await room.services.update("web", version, spec(), rollback=False, credentials=None)
    assert room.services.find("web") is after


async def test_only_what_tasks_are_made_of_makes_new_tasks(room: SwarmRoom) -> None:
    service = await made(room, spec())
    relabeled = await changed(room, service, spec(labels={"a": "1"}))
    assert (relabeled.spec_version, relabeled.update_status) == (service.spec_version, None)
    policy = TaskSpec(container_spec=ContainerSpec(image="busybox"), restart_policy=TaskRestartPolicy(max_attempts=3))
    assert (await changed(room, service, spec(task_template=policy))).spec_version == service.spec_version
    scaled = await changed(room, service, spec(mode=Mode(replicated=Replicated(replicas=5))))
    assert scaled.spec_version == service.spec_version
    other = TaskSpec(container_spec=ContainerSpec(image="alpine"))
    renewed = await changed(room, service, spec(task_template=other))
    assert renewed.spec_version == service.spec_version + 1
    assert renewed.update_status is not None and renewed.update_status.state == "updating"


async def test_a_rollback_returns_to_what_was_and_to_its_tasks(room: SwarmRoom) -> None:
    service = await made(room, spec())
    with pytest.raises(InvalidParameter, match="does not have a previous spec"):
        await changed(room, service, spec(), rollback=True)
    other = TaskSpec(container_spec=ContainerSpec(image="alpine"))
    await changed(room, service, spec(task_template=other))
    back = await changed(room, service, ServiceSpec(), rollback=True)
    assert back.spec.task_template.container_spec == ContainerSpec(image="busybox")
    assert back.spec_version == service.spec_version
    assert back.update_status is not None and back.update_status.state == "rollback_started"
    again = await changed(room, service, spec(task_template=TaskSpec(container_spec=ContainerSpec(image="third"))))
    assert again.spec_version == 4, "a version is never used for something else"


async def test_a_job_runs_again_whatever_has_changed(room: SwarmRoom) -> None:
    mode = Mode(replicated_job=ReplicatedJob(total_completions=1))
    job = await made(room, spec(mode=mode))
    again = await changed(room, job, spec(mode=mode, labels={"a": "1"}))
    assert (again.job_iteration, again.update_status) == (job.job_iteration + 1, None)


async def test_a_service_keeps_its_name_and_its_kind(room: SwarmRoom) -> None:
    service = await made(room, spec())
    with pytest.raises(InvalidParameter, match="renaming services is not supported"):
        await changed(room, service, spec("other"))
    with pytest.raises(InvalidParameter, match="service mode change is not allowed"):
        await changed(room, service, spec(mode=Mode(global_=Empty())))
    assert room.services.find("web") is service


async def test_credentials_are_sealed_and_outlive_a_change_without_any(room: SwarmRoom) -> None:
    credentials = Credentials(username="me", password="hunter2")
    service = await room.services.create(spec(), credentials)
    assert service.credentials and b"hunter2" not in service.credentials
    assert (await changed(room, service, spec(labels={"a": "1"}))).credentials == service.credentials


async def test_ports_are_chosen_kept_and_not_given_twice(room: SwarmRoom) -> None:
    web = await made(room, spec(ports=[port(), port(target=81)]))
    assert [one.published_port for one in web.ports] == [FIRST_PORT, FIRST_PORT + 1]
    other = await made(room, spec("other", ports=[port(), port(protocol="udp", target=53)]))
    assert [one.published_port for one in other.ports] == [FIRST_PORT + 2, FIRST_PORT]
    kept = await changed(room, web, spec(ports=[port(target=81)]))
    assert [one.published_port for one in kept.ports] == [FIRST_PORT + 1]


async def test_a_port_that_is_taken_names_who_has_it(room: SwarmRoom) -> None:
    await made(room, spec("on-host", ports=[port(8080, mode="host")]))
    await made(room, spec("udp", ports=[port(8080, protocol="udp")]))
    await made(room, spec("owner", ports=[port(8080)]))
    with pytest.raises(InvalidParameter, match="port '8080' is already in use by service 'owner'"):
        await made(room, spec("late", ports=[port(8080)]))
    assert len(room.store.services) == 3


async def test_no_port_is_left(room: SwarmRoom) -> None:
    ports = [port(number) for number in range(FIRST_PORT, LAST_PORT + 1)]
    service = Service(id="x", version=1, created_at="", updated_at="", spec=spec("all"), ports=ports)
    room.store.services["x"] = service
    with pytest.raises(InvalidParameter, match="no port is left"):
        await made(room, spec(ports=[port()]))


async def test_a_port_in_ingress_mode_needs_the_ingress_network(room: SwarmRoom) -> None:
    del room.networks.records["ingress"]
    with pytest.raises(InvalidParameter, match="no ingress network is present"):
        await made(room, spec(ports=[port(80)]))
    await made(room, spec(ports=[port(80, mode="host")]))


async def test_a_name_and_a_port_that_are_heard_of_while_a_service_is_made_are_taken(room: SwarmRoom) -> None:
    room.store.shared = True
    other = SwarmRecords(room.store.store)
    other.take_in(await news(room.store.store))
    other.shared = True
    theirs = list[str]()

    async def meanwhile(service: Service) -> None:
        if service.spec.name not in theirs:
            theirs.append(service.spec.name)
            own = Service(id=f"other-{service.spec.name}", version=0, created_at="", updated_at="", spec=spec("web"))
            await other.save(but(own, ports=[port(8080)]), alone="service")
            room.store.take_in(await news(room.store.store))

    room.credentials.meanwhile = meanwhile
    with pytest.raises(Conflict, match="already exists"):
        await made(room, spec())
    room.store.services.clear()
    with pytest.raises(InvalidParameter, match="'8080' is already in use"):
        await made(room, spec("late", ports=[port(8080)]))


@pytest.mark.parametrize("what", ["secret", "config", "network"])
@pytest.mark.parametrize("change", [False, True])
async def test_what_a_service_relies_on_does_not_go_while_it_is_made(room: SwarmRoom, what: str, change: bool) -> None:
    secret = await room.services.secrets.create(ObjectSpec(name="word", data="eA=="))
    config = await room.services.configs.create(ObjectSpec(name="conf", data="eA=="))
    container = ContainerSpec(image="busybox")
    if what == "secret":
        container.secrets = [SecretReference(secret_id=secret.id, secret_name="word", file=FileTarget(name="word"))]
    elif what == "config":
        container.configs = [ConfigReference(config_id=config.id, config_name="conf", file=FileTarget(name="conf"))]
    room.networks.add("lan")
    wanted = spec("web", *(["lan"] if what == "network" else []), task_template=TaskSpec(container_spec=container))
    former = await made(room, spec()) if change else None

    async def meanwhile(service: Service) -> None:
        if what == "network":
            room.networks.records.pop("lan")
        else:
            await (room.services.secrets if what == "secret" else room.services.configs).remove(
                "word" if what == "secret" else "conf"
            )

    room.credentials.meanwhile = meanwhile
    with pytest.raises(HuskError, match="not found"):
        await (changed(room, former, wanted) if former is not None else made(room, wanted))
    assert list(room.store.services.values()) == ([former] if former is not None else [])


async def test_a_removed_service_is_gone_at_once(room: SwarmRoom) -> None:
    await made(room, spec())
    await room.services.remove("web")
    assert room.told[-1] == ("service", "remove")
    with pytest.raises(NotFound):
        await room.services.remove("web")


async def test_services_by_filters(room: SwarmRoom) -> None:
    web = await made(room, spec(labels={"tier": "front"}))
    job = await made(room, spec("job", mode=Mode(global_job=Empty())))

    def found(**filters: str) -> list[str]:
        return [s.spec.name for s in room.services.listing(Filters({key: [value] for key, value in filters.items()}))]

    assert found() == ["web", "job"]
    assert found(name="we") == found(label="tier=front") == found(mode="replicated") == found(id=web.id[:5]) == ["web"]
    assert found(mode="global-job") == [job.spec.name]
    assert found(runtime="plugin") == found(name="b") == []


async def test_tasks_by_filters(room: SwarmRoom) -> None:
    web, other = await made(room, spec()), await made(room, spec("other"))
    old = task(web, slot=2, state="failed", spec_version=0, desired_state="shutdown")
    await room.store.save(*(msgspec.structs.replace(t, node_id=room.cluster.node_id) for t in (task(web), old)))
    await room.store.save(task(other, slot=3))

    def slots(**filters: str) -> list[int]:
        chosen = {key.replace("up_to_date", "_up-to-date"): [value] for key, value in filters.items()}
        return [one.slot for one in room.services.tasks(Filters({k.replace("desired_state", "desired-state"): v
                                                                 for k, v in chosen.items()}))]  # fmt: skip

    assert slots() == [1, 2, 3]
    assert slots(service="web") == [1, 2]
    assert slots(desired_state="Running") == [1, 3] and slots(desired_state="shutdown") == [2]
    assert slots(up_to_date="true") == [1, 3] and slots(up_to_date="false") == [2]
    assert slots(name="web.1") == [1] and slots(node="self") == [1, 2] and slots(id="task-other") == [3]
    assert [one.slot for one in room.services.tasks_of(web)] == [1, 2]
    with pytest.raises(NotFound):
        slots(node="beta")
    with pytest.raises(NotFound):
        slots(service="nothing")
    with pytest.raises(InvalidParameter, match="Invalid desired-state filter: 'sleeping'"):
        slots(desired_state="sleeping")


async def test_tasks_without_a_container_have_no_log_and_no_place(room: SwarmRoom) -> None:
    room.networks.add("lan")
    web = await made(room, spec())
    running, waiting = await room.run(web, lan="10.1.0.2"), task(web, slot=2, state="pending")
    found: list[Any] = room.services.logs.of([running, waiting], LogQuery(stdout=True), cast(Any, lambda task: None))
    assert [(some[0].slot, log) for some, log in found] == [(1, "log of web-1")]
    assert [(network.name, address) for network, address in room.services.places_of(running)] == [
        ("lan", "10.1.0.2/24")
    ]
    assert room.services.places_of(waiting) == []


async def test_a_node_that_is_drained_says_so(room: SwarmRoom) -> None:
    node = room.cluster.node
    await room.services.update_node("self", NodeSpec(role="manager", availability="drain"), node.version)
    assert room.happened[-1].attributes == {
        "name": "alpha", "availability.old": "active", "availability.new": "drain",
    }  # fmt: skip


async def test_nodes_that_are_promoted_and_removed_are_told(room: SwarmRoom) -> None:
    await room.store.save(Node(id="w", version=0, created_at="", updated_at="", spec=NodeSpec(role="worker")))
    room.store.shared = True
    await room.services.update_node("w", NodeSpec(role="manager"), room.nodes.find("w").version)
    assert room.happened[-1].attributes == {"name": "", "role.old": "worker", "role.new": "manager"}
    await room.services.update_node("w", NodeSpec(role="worker"), room.nodes.find("w").version)
    await room.services.remove_node("w", force=True)
    assert room.told[-1] == ("node", "remove")


async def test_who_leaves_leaves_nothing(room: SwarmRoom) -> None:
    web = await made(room, spec(ports=[port(80)]))
    await room.run(web)
    with pytest.raises(HuskError):
        await room.services.leave(force=False)
    assert room.store.services
    await room.services.leave(force=True)
    assert not room.cluster.active and room.forgotten == 1
    assert (room.store.services, room.store.tasks, room.networks.records) == ({}, {}, {})


async def test_who_could_not_leave_to_the_end_goes_on_with_it(room: SwarmRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    await made(room, spec(ports=[port(80)]))
    faults = iter([Unavailable("the cluster store does not answer")])
    delete = room.store.delete

    async def failing(*records: Any, **how: Any) -> None:
        if any(isinstance(record, Service) for record in records) and (fault := next(faults, None)):
            raise fault
        await delete(*records, **how)

    monkeypatch.setattr(room.store, "delete", failing)
    with pytest.raises(Unavailable):
        await room.services.leave(force=True)
    assert not room.cluster.active and room.store.services and room.cluster.parting
    await room.services.leave(force=True)
    assert (room.store.services, room.networks.records, room.cluster.node_id) == ({}, {}, "")
    with pytest.raises(Unavailable, match="not part of a swarm"):
        await room.services.leave(force=True)


async def test_a_daemon_that_died_while_it_left_goes_on_leaving(
    room: SwarmRoom, tmp_path: Path, state: StateStore
) -> None:
    await made(room, spec())
    await room.cluster.leave(True)
    await room.services.open()
    assert room.store.services == {} and room.networks.records == {}
    assert not SwarmRoom(tmp_path, state).cluster.active


async def test_a_manager_says_what_it_cannot_do(room: SwarmRoom) -> None:
    assert room.services.trouble == ""
    (await room.begin_etcd()).trouble = "no room"
    assert "is started again: no room" in room.services.trouble
    room.cluster.port_trouble = "the port is taken"
    assert room.services.trouble == "the port is taken"
    room.store.away = lambda: "nobody answers"
    assert room.services.trouble == "nobody answers"
