"""Containers over HTTP: what the engine is asked, and how a container looks from outside."""

import asyncio

import pytest
from aiohttp import ClientSession
from msgspec.structs import replace

from husk.engine.containers.index import Exit
from husk.engine.model.container import ZERO_TIME, Endpoint, MountPoint, State
from husk.engine.model.container_config import ContainerConfig, HostConfig, LogConfig
from husk.engine.model.filters import Filters
from tests.support.but import but
from tests.unit.api.fake_engine import BUSYBOX, FakeEngine, container

STARTED = "2026-01-02T03:04:05.000000006Z"


# create


async def test_create_hands_over_what_the_client_wrote(client: ClientSession, engine: FakeEngine) -> None:
    body = {
        "Image": "busybox",
        "Cmd": "true",
        "Env": None,
        "Labels": {"a": "b"},
        "HostConfig": {"Memory": 1 << 26, "AutoRemove": True, "RestartPolicy": {"Name": "always"}},
        "NetworkingConfig": {"EndpointsConfig": {"bridge": {"Aliases": ["db"]}}},
    }
    response = await client.post("/v1.44/containers/create?name=web&platform=linux/amd64", json=body)
    assert response.status == 201
    assert engine.containers.created is not None
    name, config, host_config, endpoints, platform = engine.containers.created
    assert (name, platform) == ("web", "linux/amd64")
    assert config == ContainerConfig(image="busybox", cmd=["true"], labels={"a": "b"})
    assert (host_config.memory, host_config.auto_remove, host_config.restart_policy.name) == (1 << 26, True, "always")
    assert endpoints["bridge"].aliases == ["db"]
    assert await response.json() == {"Id": engine.containers.find("web").id, "Warnings": ["a warning"]}


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b"{", "application/json", "invalid JSON: "),
        (b"[]", "application/json", "invalid JSON: cannot unmarshal array into an object"),
        (b'{"Image": 1}', "application/json", "invalid JSON: Expected `str`, got `int` - at `$.Image`"),
        (b"{}", "application/json", "config cannot be empty in order to create a container"),
        (b'{"HostConfig": {}}', "application/json", "config cannot be empty in order to create a container"),
        (b"", "application/json", "invalid JSON: got EOF while reading request body"),
        (b" ", "application/json", "invalid JSON: got EOF while reading request body"),
        (b"{}", "text/plain", "unsupported Content-Type header (text/plain): must be 'application/json'"),
        (b"{}", "", "malformed Content-Type header (): mime: no media type"),
    ],
)
async def test_a_body_that_makes_no_sense_is_refused(
    client: ClientSession, engine: FakeEngine, body: bytes, content_type: str, message: str
) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    skip = [] if content_type else ["Content-Type"]
    response = await client.post("/containers/create", data=body, headers=headers, skip_auto_headers=skip)
    assert response.status == 400
    assert (await response.json())["message"].startswith(message)
    assert engine.calls == []


async def test_the_content_type_may_have_parameters(client: ClientSession, engine: FakeEngine) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert (await client.post("/containers/create", data=b'{"Image":"x"}', headers=headers)).status == 201


# verbs


@pytest.mark.parametrize(
    ("method", "path", "status", "call"),
    [
        ("POST", "/containers/web/start", 204, ("start", "web")),
        ("POST", "/containers/web/stop", 204, ("stop", "web", None, "")),
        ("POST", "/containers/web/stop?t=0&signal=INT", 204, ("stop", "web", 0, "INT")),
        ("POST", "/containers/web/stop?t=-1", 204, ("stop", "web", -1, "")),
        ("POST", "/containers/web/restart?t=5", 204, ("restart", "web", 5, "")),
        ("POST", "/containers/web/kill?signal=SIGHUP", 204, ("kill", "web", "SIGHUP")),
        ("POST", "/containers/web/pause", 204, ("pause", "web")),
        ("POST", "/containers/web/unpause", 204, ("unpause", "web")),
        ("POST", "/containers/web/rename?name=db", 204, ("rename", "web", "db")),
        ("POST", "/containers/web/resize?h=24&w=80", 200, ("resize", "web", 24, 80)),
        ("DELETE", "/containers/web?force=1&v=True&link=no", 204, ("remove", "web", True, True, False)),
        ("DELETE", "/containers/web", 204, ("remove", "web", False, False, False)),
    ],
)
async def test_a_verb_reaches_the_engine(
    client: ClientSession, engine: FakeEngine, method: str, path: str, status: int, call: tuple[object, ...]
) -> None:
    response = await client.request(method, path)
    assert (response.status, await response.read(), engine.calls) == (status, b"", [call])


@pytest.mark.parametrize(
    "path",
    ["stop?t=x", "stop?t=1_0", "stop?t=5s", "stop?t=--5", "resize?h=1", "resize?h=x&w=1", "resize?h=1&w=70000"],
)
async def test_a_parameter_that_makes_no_sense_is_refused(client: ClientSession, engine: FakeEngine, path: str) -> None:
    response = await client.post(f"/containers/web/{path}")
    assert (response.status, engine.calls) == (400, [])


async def test_start_takes_no_body(client: ClientSession) -> None:
    response = await client.post("/containers/web/start", json={"Binds": ["/:/host"]})
    assert response.status == 400


# wait


async def test_wait_answers_its_headers_before_it_waits(client: ClientSession, engine: FakeEngine) -> None:
    engine.containers.add(container("web"))
    async with asyncio.timeout(5):
        response = await client.post("/containers/web/wait?condition=next-exit")
    assert response.status == 200
    engine.containers.exits["web"].set_result(Exit(137))
    assert await response.json() == {"StatusCode": 137}


async def test_wait_tells_what_went_wrong(client: ClientSession, engine: FakeEngine) -> None:
    engine.containers.add(container("web"))
    response = await client.post("/containers/web/wait")
    engine.containers.exits["web"].set_result(Exit(127, "no such file"))
    assert await response.json() == {"StatusCode": 127, "Error": {"Message": "no such file"}}


async def test_wait_for_nobody_is_404(client: ClientSession) -> None:
    assert (await client.post("/containers/nope/wait")).status == 404


# list


async def test_the_list_shows_what_ps_prints(client: ClientSession, engine: FakeEngine) -> None:
    engine.containers.add(
        container(
            "web",
            config=ContainerConfig(image="busybox", labels={"a": "b"}, exposed_ports={"80/tcp": {}}),
            args=["-c", "echo hi"],
            state=State(status="running", started_at=STARTED, pid=1),
            sandbox_path="/run/netns/x",
            endpoints={"bridge": Endpoint(network_name="bridge", network_id="n", ip_address="172.17.0.2")},
            mounts=[MountPoint(type="bind", source="/a", destination="/b", propagation="rprivate")],
        )
    )
    [shown] = await (await client.get("/containers/json")).json()
    status = shown.pop("Status")
    assert status.startswith("Up ")
    network = shown["NetworkSettings"]["Networks"]["bridge"]
    assert (network["IPAddress"], network["NetworkID"]) == ("172.17.0.2", "n")
    del shown["NetworkSettings"]
    assert shown == {
        "Id": engine.containers.find("web").id,
        "Names": ["/web"],
        "Health": {"Status": "none", "FailingStreak": 0},
        "Image": "busybox",
        "ImageID": BUSYBOX,
        "Command": "sleep -c 'echo hi'",
        "Created": 1_767_323_045,
        "Ports": [{"PrivatePort": 80, "Type": "tcp"}],
        "Labels": {"a": "b"},
        "State": "running",
        "HostConfig": {"NetworkMode": "bridge"},
        "Mounts": [
            {"Type": "bind", "Source": "/a", "Destination": "/b", "Mode": "", "RW": True, "Propagation": "rprivate"}
        ],
    }


async def test_the_list_passes_on_what_was_asked(client: ClientSession, engine: FakeEngine) -> None:
    await client.get('/containers/json?all=1&limit=3&filters={"status":["exited"]}')
    await client.get("/containers/json")
    assert engine.containers.listed == [(True, 3, Filters({"status": ["exited"]})), (False, 0, Filters())]


async def test_sizes_are_shown_when_asked(client: ClientSession, engine: FakeEngine) -> None:
    engine.containers.add(container("web"))
    [shown] = await (await client.get("/containers/json?all=1&size=1")).json()
    assert (shown["SizeRw"], shown["SizeRootFs"]) == (10, 4_000_010)
    inspected = await (await client.get("/containers/web/json?size=1")).json()
    assert (inspected["SizeRw"], inspected["SizeRootFs"]) == (10, 4_000_010)


async def test_a_name_that_means_another_image_now_is_not_shown(client: ClientSession, engine: FakeEngine) -> None:
    engine.containers.add(container("old", image_id="sha256:" + "00" * 32))
    engine.containers.add(container("gone", config=ContainerConfig(image="gone")))
    shown = await (await client.get("/containers/json?all=1")).json()
    assert [c["Image"] for c in shown] == ["sha256:" + "00" * 32, BUSYBOX]


# inspect


async def test_inspect_has_the_whole_shape(client: ClientSession, engine: FakeEngine) -> None:
    engine.containers.add(container("web"))
    shown = await (await client.get("/v1.50/containers/web/json")).json()
    assert list(shown) == [
        "Id", "Created", "Path", "Args", "State", "Image", "ResolvConfPath", "HostnamePath", "HostsPath", "LogPath",
        "Name", "RestartCount", "Driver", "Platform", "MountLabel", "ProcessLabel", "AppArmorProfile", "ExecIDs",
        "HostConfig", "GraphDriver", "Mounts", "Config", "NetworkSettings",
    ]  # fmt: skip
    assert shown["Name"] == "/web"
    assert shown["State"]["Status"] == "created"
    assert shown["Config"]["Cmd"] == ["sleep", "60"]
    assert "Healthcheck" not in shown["Config"]
    assert "StopSignal" not in shown["Config"]
    assert shown["HostConfig"]["NetworkMode"] == "bridge"
    assert shown["HostConfig"]["CpuShares"] == 0
    assert "Init" not in shown["HostConfig"]


async def test_its_files_are_there_from_the_first_start_on(client: ClientSession, engine: FakeEngine) -> None:
    host_config = HostConfig(log_config=LogConfig(type="json-file"))
    engine.containers.add(made := container("web", host_config=host_config))
    for started, begin in ((ZERO_TIME, ""), ("2024-01-01T00:00:00Z", "/var/lib/test/containers/")):
        engine.containers.add(but(made, state=replace(made.state, started_at=started)))
        shown = await (await client.get("/containers/web/json")).json()
        for path in ("ResolvConfPath", "HostnamePath", "HostsPath", "LogPath"):
            assert bool(shown[path]) == bool(begin) and shown[path].startswith(begin)


async def test_what_is_set_is_shown_even_if_it_is_no_or_zero(client: ClientSession, engine: FakeEngine) -> None:
    config = ContainerConfig(image="busybox", stop_timeout=0, stop_signal="SIGINT")
    engine.containers.add(container("web", config=config, host_config=HostConfig(init=False)))
    shown = await (await client.get("/containers/web/json")).json()
    assert (shown["Config"]["StopTimeout"], shown["Config"]["StopSignal"]) == (0, "SIGINT")
    assert shown["HostConfig"]["Init"] is False


async def test_each_run_has_a_sandbox_of_its_own(client: ClientSession, engine: FakeEngine) -> None:
    async def sandbox() -> tuple[str, str]:
        settings = (await (await client.get("/containers/web/json")).json())["NetworkSettings"]
        return settings["SandboxID"], settings["SandboxKey"]

    bridge = {"bridge": Endpoint(network_name="bridge", network_id="n", ip_address="172.17.0.2")}
    state = State(status="running", pid=7)
    made = container("web", endpoints=bridge, state=state, sandbox_path="/run/netns/0123456789")
    engine.containers.add(made)
    first, key = await sandbox()
    assert (len(first), first[:10], key) == (64, "0123456789", "/run/netns/0123456789")
    assert (await sandbox())[0] == first
    engine.containers.add(but(made, sandbox_path="/run/netns/abcdef0123"))
    second, key = await sandbox()
    assert second.startswith("abcdef0123") and key.endswith("/abcdef0123")
    engine.containers.add(but(made, sandbox_path=""))
    of_host, key = await sandbox()
    assert (len(of_host), key) == (64, "/proc/7/ns/net") and len({first, second, of_host}) == 3
    engine.containers.add(but(made, sandbox_path="", state=replace(state, status="exited")))
    assert await sandbox() == ("", "")


async def test_the_default_bridge_is_repeated_for_older_clients(client: ClientSession, engine: FakeEngine) -> None:
    bridge = Endpoint(
        network_name="bridge", network_id="n", ip_address="172.17.0.2", prefix_len=16, gateway="172.17.0.1"
    )
    engine.containers.add(made := container("web", endpoints={"bridge": bridge}, state=State(status="running")))
    old = (await (await client.get("/v1.51/containers/web/json")).json())["NetworkSettings"]
    assert (old["IPAddress"], old["IPPrefixLen"], old["Gateway"]) == ("172.17.0.2", 16, "172.17.0.1")
    new = (await (await client.get("/v1.52/containers/web/json")).json())["NetworkSettings"]
    assert list(new) == ["SandboxID", "SandboxKey", "Ports", "Gateway", "IPAddress", "Networks"]
    assert (new["IPAddress"], new["Gateway"]) == ("172.17.0.2", "172.17.0.1"), "tools read them in every version"
    assert new["Networks"]["bridge"]["IPPrefixLen"] == 16
    engine.containers.add(but(made, state=replace(made.state, status="exited")))
    ended = (await (await client.get("/v1.51/containers/web/json")).json())["NetworkSettings"]
    assert (ended["IPAddress"], ended["Networks"]["bridge"]["IPAddress"]) == ("", ""), "given back or not yet"
