"""Answers of `inspect` and `ps`: every field, its type, and the defaults that were written into it."""

import json

from tests.parity.differences import (
    DEFAULT_NETWORK,
    ENDED,
    ENDPOINTS,
    INSPECT,
    NEVER_STARTED,
    NEWER,
    NO_POLICY,
    NOT_PRIVILEGED,
    RUNNING,
    STARTED,
    refused,
)
from tests.support.parity import ANY, Difference, Engine, Pair


def test_inspect_of_a_created_container(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.create("box", Cmd=["true"])
        return engine.get("/containers/box/json")

    pair.same(script, *INSPECT, *NOT_PRIVILEGED, *NO_POLICY, *DEFAULT_NETWORK, *ENDPOINTS, *NEVER_STARTED)


def test_inspect_of_a_running_container(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.start("box", Cmd=["sleep", "60"], Tty=True, OpenStdin=True)
        return engine.get("/containers/box/json", size=1)

    pair.same(script, *INSPECT, *NOT_PRIVILEGED, *NO_POLICY, *DEFAULT_NETWORK, *ENDPOINTS, *STARTED, *RUNNING)


def test_inspect_of_an_ended_container(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.shell("box", "exit 7")
        engine.wait("box")
        return engine.get("/containers/box/json")

    pair.same(script, *INSPECT, *NOT_PRIVILEGED, *NO_POLICY, *DEFAULT_NETWORK, *ENDPOINTS, *STARTED, *ENDED)


def test_inspect_of_a_container_of_a_rich_image(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.create("box", "rich", Env=["BOTH=mine", "NEW"], Labels={"both": "mine", "new": ""}, Hostname="h")
        return engine.get("/containers/box/json")

    pair.same(script, *INSPECT, *NOT_PRIVILEGED, *NO_POLICY, *DEFAULT_NETWORK, *ENDPOINTS, *NEVER_STARTED)


def test_inspect_of_a_container_with_much_said(pair: Pair) -> None:
    host = {
        "Memory": 64 << 20,
        "CpuShares": 512,
        "PidsLimit": 50,
        "Binds": ["/etc/hostname:/host:ro", "named:/named"],
        "Mounts": [{"Type": "tmpfs", "Target": "/tmpfs", "TmpfsOptions": {"SizeBytes": 65536}}],
        "Tmpfs": {"/t": "size=64k"},
        "NetworkMode": "none",
        "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 2},
        "CapAdd": ["NET_ADMIN"],
        "CapDrop": ["ALL"],
        "Dns": ["1.2.3.4"],
        "ExtraHosts": ["a:1.1.1.1"],
        "GroupAdd": ["users"],
        "Privileged": False,
        "ReadonlyRootfs": True,
        "SecurityOpt": ["no-new-privileges"],
        "Sysctls": {"net.ipv4.ip_forward": "1"},
        "Ulimits": [{"Name": "nofile", "Soft": 100, "Hard": 200}],
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m"}},
        "Init": True,
    }

    def script(engine: Engine) -> object:
        engine.start("box", host=host, Cmd=["sleep", "60"], StopTimeout=3, ExposedPorts={"8080/tcp": {}})
        shown = engine.get("/containers/box/json")
        engine.remove("box")
        engine.http("DELETE", "/volumes/named")
        return shown

    pair.same(script, *INSPECT, *NOT_PRIVILEGED, *ENDPOINTS, *STARTED, *RUNNING)


def test_inspect_of_a_privileged_container_and_of_one_on_the_host(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.create("priv", host={"Privileged": True})
        shared = dict.fromkeys(("NetworkMode", "PidMode", "IpcMode", "UTSMode", "CgroupnsMode"), "host")
        engine.create("host", host=shared)
        return [engine.get(f"/containers/{name}/json") for name in ("priv", "host")]

    pair.same(script, *INSPECT, *NOT_PRIVILEGED, *NO_POLICY, *DEFAULT_NETWORK, *ENDPOINTS, *NEVER_STARTED)


def test_list(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.start("up", Cmd=["sleep", "60"], Labels={"a": "b"}, host={"Binds": ["/usr:/x"], "NetworkMode": "none"})
        engine.start("bridged", Cmd=["sleep", "60"])
        engine.create("made", "rich", Cmd=["echo 'a b' c"])
        engine.shell("gone", "exit 3")
        engine.wait("gone")
        return {
            "running": engine.get("/containers/json"),
            "all": engine.get("/containers/json", all=1, size=1),
            "limit": engine.get("/containers/json", limit=2),
            "ps": engine.docker("ps", "-a", "--format", "{{.Names}} {{.Image}} {{.Command}} {{.Ports}} {{.Mounts}}"),
            "networks": engine.docker("ps", "-a", "--format", "{{.Networks}} {{.Labels}} {{.State}}"),
        }

    pair.same(script, *DEFAULT_NETWORK, *ENDPOINTS, *NEVER_STARTED)


def test_filters_of_the_list(pair: Pair) -> None:
    wanted: list[dict[str, list[str]]] = [
        {"name": ["one"]}, {"name": ["^/one$"]}, {"name": ["o"]}, {"name": ["["]},
        {"label": ["k"]}, {"label": ["k=v"]}, {"label": ["k=w"]}, {"label": ["k=v", "l"]},
        {"status": ["created"]}, {"status": ["exited", "running"]}, {"status": ["asleep"]},
        {"exited": ["3"]}, {"exited": ["x"]}, {"exited": ["0"]}, {"before": ["two"]}, {"since": ["one"]},
        {"before": ["nobody"]}, {"since": ["nobody"]}, {"ancestor": ["parity"]}, {"ancestor": ["rich:latest"]},
        {"ancestor": ["none-such"]}, {"volume": ["/data"]}, {"volume": ["vol"]}, {"network": ["none"]},
        {"network": ["bridge"]}, {"network": ["nope"]}, {"health": ["none"]}, {"health": ["starting"]},
        {"health": ["bad"]}, {"expose": ["80"]}, {"expose": ["80/tcp"]}, {"expose": ["7000-9000/tcp"]},
        {"publish": ["80"]}, {"publish": ["a"]}, {"is-task": ["true"]}, {"is-task": ["false"]}, {"is-task": ["x"]},
        {"nonsense": ["1"]}, {"id": ["zzz"]}, {"name": ["one"], "status": ["running"]}, {"name": ["one", "three"]},
        {"isolation": ["default"]},
    ]  # fmt: skip

    def script(engine: Engine) -> object:
        engine.start("one", Cmd=["sleep", "60"], Labels={"k": "v", "l": ""}, host={"NetworkMode": "none"})
        engine.create("two", "rich", Labels={"k": "w"}, host={"Binds": ["vol:/v"]})
        engine.shell("three", "exit 3", ExposedPorts={"8000/udp": {}, "8000/tcp": {}})
        engine.start("four", Cmd=["sleep", "60"], ExposedPorts={"8000/tcp": {}})
        engine.wait("three")
        found: dict[str, object] = {}
        for each in wanted:
            answer = engine.get("/containers/json", all=1, filters=json.dumps(each))
            if answer["status"] == 200:
                answer["body"] = [container["Names"] for container in answer["body"]]
            found[json.dumps(each)] = answer
        found["old form"] = engine.get("/containers/json", filters='{"status": {"created": true}}')["status"]
        found["no json"] = engine.get("/containers/json", filters="{")
        found["limit"] = [c["Names"] for c in engine.get("/containers/json", limit=2)["body"]]
        found["limit x"] = engine.get("/containers/json", limit="x")
        engine.remove("one", "two", "three", "four")
        engine.http("DELETE", "/volumes/vol")
        return found

    invalid = "invalid filter '{}'"
    pair.same(
        script,
        refused("$.limit x.status", 500, 400),
        refused("$.limit x.body.message", ANY, "invalid value 'x' for limit: not a number"),
        refused("$.no json.status", 500, 400),
        refused("$.no json.body.message", ANY, "invalid filter"),
        refused("*nobody*.status", 500, 404),
        refused("*nobody*.message", "no such container nobody", "no such container: nobody"),
        refused('$.{"exited": ["x"]}.status', 500, 400),
        refused('$.{"exited": ["x"]}.body.message', ANY, invalid.format("exited=x")),
        refused('$.{"publish": ["a"]}.status', 500, 400),
        refused('$.{"publish": ["a"]}.body.message', ANY, "error while looking up for publish a: invalid port range"),
        refused('$.{"health": ["bad"]}.body.message', ANY, "invalid filter 'health=bad': *"),
        Difference('$.{"status": ["asleep"]}.body.message', invalid.format("status=asleep"), "invalid *: *", NEWER),
    )
