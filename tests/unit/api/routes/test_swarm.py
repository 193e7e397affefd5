"""The swarm and its node over HTTP: what makes one, what is refused, and what a locked one tells."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from husk.swarm.backup import backups
from husk.swarm.backup.backups import write
from husk.swarm.ca.tokens import new_token, read_token
from tests.support.free_ports import free_port
from tests.support.waiting import until_async
from tests.unit.api.fake_engine import FakeEngine
from tests.unit.api.swarm import locked, swarm_behind
from tests.unit.swarm.swarm_room import SwarmRoom


@pytest.fixture
async def room(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[SwarmRoom]:
    async with swarm_behind(engine, tmp_path) as made:
        yield made


async def init(client: ClientSession, **request: Any) -> str:
    response = await client.post("/swarm/init", json={"AdvertiseAddr": "192.0.2.7:2377"} | request)
    assert response.status == 200, await response.text()
    return str(await response.json())


async def test_a_swarm_of_one(client: ClientSession, room: SwarmRoom) -> None:
    node = await init(client)
    shown = await (await client.get("/swarm")).json()
    assert shown["DefaultAddrPool"] == ["10.0.0.0/8"] and shown["JoinTokens"]["Worker"].startswith("SWMTKN-1-")
    (listed,) = await (await client.get("/nodes")).json()
    assert (listed["ID"], listed["Status"]["Addr"], listed["Description"]["Hostname"]) == (node, "192.0.2.7", "alpha")
    assert listed["ManagerStatus"]["Addr"] == "192.0.2.7:2377"
    assert [network.name for network in room.networks.listing()] == ["ingress"]
    assert (await client.post("/swarm/init", json={})).status == 503
    assert await init(client, ForceNewCluster=True) == node


@pytest.mark.parametrize(
    "request_",
    [
        {"DefaultAddrPool": ["nonsense"]},
        {"DefaultAddrPool": ["10.0.0.1/8"]},
        {"DefaultAddrPool": ["127.0.0.0/8"]},
        {"DefaultAddrPool": ["10.0.0.0/8"], "SubnetSize": 4},
        {"DefaultAddrPool": ["10.0.0.0/8"], "SubnetSize": 30},
        {"Availability": "asleep"},
        {"DataPathPort": 80},
        {"AdvertiseAddr": "no-such-interface"},
        {"AdvertiseAddr": "0.0.0.0"},
        {"DataPathAddr": "0.0.0.0"},
        {"ListenAddr": "no-such-interface:2377"},
    ],
)
async def test_what_makes_no_swarm(client: ClientSession, room: SwarmRoom, request_: dict[str, Any]) -> None:
    assert (await client.post("/swarm/init", json=request_)).status == 400
    assert not room.cluster.active


@pytest.mark.parametrize(
    ("written", "address"),
    [("10.1.2.3", "10.1.2.3"), ("10.1.2.3:99", "10.1.2.3"), ("[2001:db8::1]", "2001:db8::1"), ("lo", "127.0.0.1")],
)
async def test_the_address_that_others_are_told(
    client: ClientSession, room: SwarmRoom, written: str, address: str
) -> None:
    await init(client, AdvertiseAddr=written)
    assert room.cluster.advertise_address == address


async def test_a_host_is_asked_for_its_own_address(client: ClientSession, room: SwarmRoom) -> None:
    await init(client, AdvertiseAddr="")
    assert room.cluster.advertise_address


async def test_joining_is_checked_before_anybody_is_asked(client: ClientSession, room: SwarmRoom) -> None:
    answer = await client.post("/swarm/join", json={})
    assert (answer.status, (await answer.json())["message"]) == (400, 'invalid ListenAddr "": invalid empty address')
    away = {"ListenAddr": "0.0.0.0:2377", "RemoteAddrs": [f"127.0.0.1:{free_port()}"], "JoinToken": "x"}
    answer = await client.post("/swarm/join", json=away)
    assert (answer.status, (await answer.json())["message"]) == (400, "invalid join token")
    answer = await client.post("/swarm/join", json=away | {"JoinToken": new_token(b"root")})
    assert answer.status == 503 and "connection refused" in (await answer.json())["message"]
    await init(client)
    assert (await client.post("/swarm/join", json={})).status == 503


async def test_where_the_cluster_port_is(client: ClientSession, room: SwarmRoom) -> None:
    assert (await client.post("/swarm/init", json={"ListenAddr": "eth0:x"})).status == 400
    assert not room.cluster.active
    await init(client, ListenAddr="127.0.0.1:3000", AdvertiseAddr="192.0.2.7")
    assert room.listener.told == ["probe 127.0.0.1:3000", "open"]
    assert room.cluster.listen_address == "127.0.0.1:3000"
    listed = (await (await client.get("/nodes")).json())[0]
    assert listed["ManagerStatus"]["Addr"] == "192.0.2.7:3000"


async def test_whom_nodes_believe_is_shown(client: ClientSession, room: SwarmRoom) -> None:
    await init(client)
    shown = await (await client.get("/swarm")).json()
    trust = room.cluster.swarm.trust
    assert trust is not None and not shown["RootRotationInProgress"]
    assert shown["TLSInfo"] == {
        "TrustRoot": trust.root.certificate,
        "CertIssuerSubject": base64.b64encode(trust.root.subject).decode(),
        "CertIssuerPublicKey": base64.b64encode(trust.root.public_key).decode(),
    }
    listed = (await (await client.get("/nodes")).json())[0]
    assert listed["Description"]["TLSInfo"] == shown["TLSInfo"]
    assert read_token(shown["JoinTokens"]["Worker"]).fits(trust.root.certificate.encode())
    path = f"/swarm/update?version={shown['Version']['Index']}"
    assert (await client.post(path, json=shown["Spec"] | {"CAConfig": {"ForceRotate": 1}})).status == 200
    during = await (await client.get("/swarm")).json()
    assert during["RootRotationInProgress"] and during["TLSInfo"]["TrustRoot"] == shown["TLSInfo"]["TrustRoot"]
    assert during["TLSInfo"]["CertIssuerPublicKey"] != shown["TLSInfo"]["CertIssuerPublicKey"]
    assert during["JoinTokens"] == shown["JoinTokens"]
    listed = (await (await client.get("/nodes")).json())[0]
    assert listed["Description"]["TLSInfo"] == shown["TLSInfo"], "the node has its old certificate still"


async def test_tokens_change_where_the_client_asks_for_it(client: ClientSession, room: SwarmRoom) -> None:
    await init(client)
    before = await (await client.get("/swarm")).json()
    version, spec = before["Version"]["Index"], before["Spec"]
    assert (await client.post(f"/swarm/update?version={version}&rotateWorkerToken=1", json=spec)).status == 200
    after = await (await client.get("/swarm")).json()
    assert after["JoinTokens"]["Worker"] != before["JoinTokens"]["Worker"]
    assert after["JoinTokens"]["Manager"] == before["JoinTokens"]["Manager"]
    assert (await client.post(f"/swarm/update?version={version}", json=spec)).status == 400


async def test_the_one_node_is_changed_and_stays(client: ClientSession, room: SwarmRoom) -> None:
    node = await init(client)
    shown = await (await client.get("/nodes/self")).json()
    version = shown["Version"]["Index"]
    drained = {"Role": "manager", "Availability": "drain", "Labels": {"disk": "ssd"}}
    assert (await client.post(f"/nodes/{node}/update?version={version}", json=drained)).status == 200
    assert (await (await client.get(f"/nodes/{node[:6]}")).json())["Spec"]["Availability"] == "drain"
    assert (await client.delete(f"/nodes/{node}")).status == 400
    assert (await client.get("/nodes/other")).status == 404


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ("{}", 1),
        ('{"role": ["manager"]}', 1),
        ('{"role": ["worker"]}', 0),
        ('{"membership": ["pending"]}', 0),
        ('{"name": ["al"]}', 1),
        ('{"name": ["beta"]}', 0),
        ('{"id": ["zzz"]}', 0),
        ('{"node.label": ["disk"]}', 0),
    ],
)
async def test_nodes_by_filters(client: ClientSession, room: SwarmRoom, filters: str, found: int) -> None:
    await init(client)
    assert len(await (await client.get("/nodes", params={"filters": filters})).json()) == found


async def test_a_filter_that_means_nothing_is_refused(client: ClientSession, room: SwarmRoom) -> None:
    await init(client)
    for filters in ('{"role": ["boss"]}', '{"shape": ["round"]}'):
        assert (await client.get("/nodes", params={"filters": filters})).status == 400


async def test_a_locked_swarm_tells_nothing_until_it_gets_its_key(
    client: ClientSession, room: SwarmRoom, engine: FakeEngine, tmp_path: Path
) -> None:
    await init(client)
    assert await (await client.get("/swarm/unlockkey")).json() == {"UnlockKey": ""}
    assert (await client.post("/swarm/unlock", json={"UnlockKey": "x"})).status == 409
    spec_locked = await locked(room, engine, tmp_path)
    key = await room.cluster.unlock_key()
    assert spec_locked.cluster.locked
    assert (await client.get("/swarm")).status == 503 and (await client.get("/nodes")).status == 503
    assert (await client.post("/swarm/unlock", json={"UnlockKey": "SWMKEY-1-" + "A" * 43})).status in (400, 401)
    assert (await client.post("/swarm/unlock", json={"UnlockKey": key})).status == 200
    assert (await client.get("/swarm")).status == 200


async def test_leaving_takes_force_while_one_is_its_manager(client: ClientSession, room: SwarmRoom) -> None:
    await init(client)
    assert (await client.post("/swarm/leave")).status == 503
    assert (await client.post("/swarm/leave?force=1")).status == 200
    assert not room.cluster.active and room.networks.listing() == []


def opened_by(word: str) -> dict[str, str]:
    return {"X-Husk-Passphrase": base64.urlsafe_b64encode(word.encode()).decode()}


async def test_a_swarm_is_backed_up_and_brought_back(client: ClientSession, room: SwarmRoom) -> None:
    word = opened_by("correct horse")
    assert (await client.post("/swarm/backup", headers=word)).status == 503
    node = await init(client, AdvertiseAddr="127.0.0.1")
    assert (await client.post("/swarm/backup")).status == 400
    assert (await client.post("/swarm/backup", headers={"X-Husk-Passphrase": "\u00e9"})).status == 400
    answer = await client.post("/swarm/backup", headers=word)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/octet-stream")
    data = await answer.read()
    refused = await client.post("/swarm/restore", headers=word, data=data)
    assert refused.status == 503 and "already part of a swarm" in (await refused.json())["message"]
    assert (await client.post("/swarm/leave?force=1")).status == 200
    wrong = await client.post("/swarm/restore", headers=opened_by("wrong"), data=data)
    assert wrong.status == 401 and "not its passphrase" in (await wrong.json())["message"]
    for query, content in (("", b""), ("", data[:-9]), ("?advertiseAddr=nowhere", data)):
        assert (await client.post(f"/swarm/restore{query}", headers=word, data=content)).status == 400
    assert not room.cluster.active
    done = await client.post("/swarm/restore", headers=word, data=data)
    assert (done.status, await done.json()) == (200, node)
    assert room.cluster.active


async def test_no_swarm_is_made_during_a_restore(
    client: ClientSession, room: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = opened_by("correct horse")
    node = await init(client, AdvertiseAddr="127.0.0.1")
    data = await (await client.post("/swarm/backup", headers=word)).read()
    assert (await client.post("/swarm/leave?force=1")).status == 200
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(*given: Any) -> None:
        begun.set()
        await go_on.wait()
        await write(*given)

    monkeypatch.setattr(backups, "write", slow)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        restoring = group.create_task(_status(client, "/swarm/restore", headers=word, data=data))
        await begun.wait()
        making = group.create_task(_status(client, "/swarm/init", json={}))
        await until_async(lambda: making.done() or bool(room.node_role.changing._waiters), "it waits")
        go_on.set()
    assert (restoring.result(), making.result()) == (200, 503)
    assert room.cluster.active and room.cluster.node_id == node


async def _status(client: ClientSession, path: str, **request: Any) -> int:
    async with client.post(path, **request) as answer:
        return answer.status


async def test_a_file_that_is_too_large_is_no_backup(
    client: ClientSession, room: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("husk.swarm.backup.file.LARGEST", 100)
    answer = await client.post("/swarm/restore", data=bytes(101))
    assert answer.status == 400 and "at most" in (await answer.json())["message"]
