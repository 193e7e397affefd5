"""The daemon over HTTP: version, info, events, networks."""

import json

import pytest
from aiohttp import ClientSession

from husk.engine.model.container import Endpoint, State
from tests.unit.api.fake_engine import FakeEngine, container


async def test_version_has_components(client: ClientSession) -> None:
    shown = await (await client.get("/version")).json()
    assert (shown["Version"], shown["ApiVersion"], shown["MinAPIVersion"]) == ("1.2.3", "1.55", "1.24")
    assert [c["Name"] for c in shown["Components"]] == ["Engine", "conmon"]
    assert shown["Components"][0]["Details"]["KernelVersion"] == "6.1.0"
    assert list(shown) == [
        "Platform", "Components", "Version", "ApiVersion", "MinAPIVersion", "GitCommit", "GoVersion", "Os", "Arch",
        "KernelVersion", "BuildTime",
    ]  # fmt: skip


async def test_info_warns_of_what_is_wrong_now(client: ClientSession, engine: FakeEngine) -> None:
    engine.system.trouble = ("WARNING: no space left on device",)
    assert "WARNING: no space left on device" in (await (await client.get("/info")).json())["Warnings"]


async def test_info_counts_and_tells(client: ClientSession, engine: FakeEngine) -> None:
    for name, status in (("a", "running"), ("b", "paused"), ("c", "exited"), ("d", "created")):
        engine.containers.add(container(name, state=State(status=status)))  # type: ignore[arg-type]
    shown = await (await client.get("/info")).json()
    assert (shown["Containers"], shown["ContainersRunning"], shown["ContainersPaused"]) == (4, 1, 1)
    assert (shown["ContainersStopped"], shown["Images"]) == (2, 1)
    kata = {"path": "/k", "runtimeArgs": ["-v"]}
    features = {"org.opencontainers.runtime-spec.features": '{"ociVersionMax":"1.2.0"}'}
    assert shown["Runtimes"] == {"crun": {"path": "/usr/bin/crun", "status": features}, "kata": kata}
    older = await (await client.get("/v1.43/info")).json()
    assert older["Runtimes"] == {"crun": {"path": "/usr/bin/crun"}, "kata": kata}
    assert shown["RegistryConfig"]["InsecureRegistryCIDRs"] == ["127.0.0.0/8", "::1/128", "10.0.0.0/8"]
    assert shown["RegistryConfig"]["IndexConfigs"]["reg.local:5000"]["Secure"] is False
    assert shown["Swarm"]["LocalNodeState"] == "inactive"
    assert shown["DriverStatus"][2:] == [["Data Space Total", "500.0 GB"], ["Data Space Available", "20.5 GB"]]
    assert (shown["CPUShares"], shown["CPUSet"], shown["OSType"], shown["NCPU"]) == (True, True, "linux", 2)


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("1.41", {"KernelMemory": True, "BridgeNfIptables": False, "BridgeNfIp6tables": False}),
        ("1.48", {"BridgeNfIptables": False, "BridgeNfIp6tables": False}),
        ("1.49", {"BridgeNfIptables": False, "BridgeNfIp6tables": False, "FirewallBackend": {"Driver": "nftables"}}),
        ("1.50", {"FirewallBackend": {"Driver": "nftables"}}),
    ],
)
async def test_info_is_that_of_the_clients_version(
    client: ClientSession, version: str, known: dict[str, object]
) -> None:
    shown = await (await client.get(f"/v{version}/info")).json()
    names = ("KernelMemory", "BridgeNfIptables", "BridgeNfIp6tables", "FirewallBackend")
    assert {name: shown[name] for name in names if name in shown} == known
    assert ("AllowNondistributableArtifactsCIDRs" in shown["RegistryConfig"]) == (version < "1.49")
    assert shown["Plugins"]["Network"] == ["bridge", "host", "ipvlan", "macvlan", "null", "overlay"]


async def test_a_proxy_password_is_not_shown(client: ClientSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://me:secret@proxy:3128")
    assert (await (await client.get("/info")).json())["HttpProxy"] == "http://xxxxx:xxxxx@proxy:3128"


async def test_events_come_as_they_happen(client: ClientSession, engine: FakeEngine) -> None:
    response = await client.get("/v1.50/events")
    engine.events.publish("container", "start", "abc", {"image": "busybox", "name": "web"})
    event = json.loads(await response.content.readline())
    nanoseconds = event.pop("timeNano")
    assert event.pop("time") == nanoseconds // 10**9
    assert event == {
        "status": "start",
        "id": "abc",
        "from": "busybox",
        "Type": "container",
        "Action": "start",
        "Actor": {"ID": "abc", "Attributes": {"image": "busybox", "name": "web"}},
        "scope": "local",
    }
    response.close()


async def test_new_clients_get_events_without_repeats_and_in_their_format(
    client: ClientSession, engine: FakeEngine
) -> None:
    response = await client.get("/v1.52/events", headers={"Accept": "application/json-seq"})
    engine.events.publish("container", "start", "abc", {})
    line = await response.content.readline()
    assert (response.content_type, line[:1]) == ("application/json-seq", b"\x1e")
    assert "status" not in json.loads(line[1:])
    response.close()


async def test_events_of_the_past_end_at_until(client: ClientSession, engine: FakeEngine) -> None:
    engine.events.publish("network", "connect", "n", {})
    engine.events.publish("image", "pull", "busybox", {})
    response = await client.get('/events?since=1&until=99999&filters={"type":["image"]}')
    assert await response.text() == ""
    response = await client.get('/events?since=1&until=1s&filters={"type":["image"]}')
    assert response.status == 200


@pytest.mark.parametrize("query", ["since=x", "until=x", "since=2&until=1", 'filters={"type":"x"}'])
async def test_events_that_make_no_sense_are_refused(client: ClientSession, query: str) -> None:
    assert (await client.get(f"/events?{query}")).status == 400


async def test_networks_can_be_looked_at(client: ClientSession, engine: FakeEngine) -> None:
    bridge = Endpoint(network_name="bridge", network_id="b", endpoint_id="e", ip_address="172.17.0.2", prefix_len=16)
    engine.containers.add(container("web", state=State(status="running"), endpoints={"bridge": bridge}))
    shown = await (await client.get("/networks")).json()
    assert [n["Name"] for n in shown] == ["bridge", "host", "none"]
    inspected = await (await client.get("/networks/bridge")).json()
    assert inspected["IPAM"]["Config"] == [{"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.1"}]
    [attached] = inspected["Containers"].values()
    assert (attached["Name"], attached["IPv4Address"]) == ("web", "172.17.0.2/16")
    assert (await client.get("/networks/nope")).status == 404


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"driver": ["bridge", "host"]}, ["bridge", "host"]),
        ({"name": ["o"]}, ["host", "none"]),
        ({"name": ["o"], "driver": ["host"]}, ["host"]),
        ({"type": ["custom"]}, []),
        ({"id": ["bb"]}, ["bridge"]),
        ({"dangling": ["true"]}, []),
        ({"dangling": ["false"]}, ["bridge", "host", "none"]),
        ({"label": ["a"]}, []),
    ],
)
async def test_networks_can_be_filtered(client: ClientSession, filters: dict[str, list[str]], names: list[str]) -> None:
    response = await client.get("/networks", params={"filters": json.dumps(filters)})
    assert [n["Name"] for n in await response.json()] == names


async def test_what_clients_ask_for_and_is_empty(client: ClientSession) -> None:
    assert await (await client.get("/plugins")).json() == []
    named = await client.get("/plugins/a/b:1/json")
    assert (named.status, await named.json()) == (404, {"message": 'plugin "a/b:1" not found'})
    assert await (await client.get("/volumes")).json() == {"Volumes": [], "Warnings": None}
