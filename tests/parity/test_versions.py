"""Clients of older versions of the API: what they ask for means what it meant then."""

from typing import Any

from tests.parity.differences import NEWER
from tests.support.parity import ABSENT, Difference, Engine, Pair

VERSIONS = ("1.24", "1.25", "1.30", "1.39", "1.40", "1.41")
MAC = "02:42:ac:11:00:55"


def mount(**fields: object) -> dict[str, object]:
    return {"HostConfig": {"Mounts": [{"Type": "bind", "Source": "/etc", "Target": "/x", **fields}]}}


REQUESTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "auto-remove": {"HostConfig": {"AutoRemove": True}},
    "not recursive": mount(BindOptions={"NonRecursive": True}),
    "of a volume": mount(VolumeOptions={"NoCopy": True}),
    "of a tmpfs": mount(TmpfsOptions={"SizeBytes": 1024}),
    "two networks": {"NetworkingConfig": {"EndpointsConfig": {"bridge": {}, "none": {}}}},
    "hardware address": {"MacAddress": MAC},
    "hardware address on the host": {"MacAddress": MAC, "HostConfig": {"NetworkMode": "host"}},
    "hardware address of the endpoint": {"NetworkingConfig": {"EndpointsConfig": {"bridge": {"MacAddress": MAC}}}},
}


def test_create(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        told: dict[str, object] = {}
        for version in VERSIONS:
            for name, request in REQUESTS.items():
                answer = engine.post(f"/v{version}/containers/create", {"Image": "parity", **request})
                if answer["status"] == 201:
                    shown = engine.get(f"/v{version}/containers/{answer['body']['Id']}/json")["body"]
                    host = {key: shown["HostConfig"].get(key) for key in ("AutoRemove", "IpcMode", "Mounts")}
                    answer = {"warnings": answer["body"]["Warnings"], **host, "mac": shown["Config"].get("MacAddress")}
                told[f"{version} {name}"] = answer
        told["platform"] = engine.post("/v1.40/containers/create?platform=windows", {"Image": "parity"})["status"]
        return told

    pair.same(
        script,
        Difference("$.1.?? *.IpcMode", "private", "shareable", "dockerd 28 gives older clients what they are used to"),
        Difference("$.* two networks.body.message", "*connected to network *", "*created with multiple *", NEWER),
    )


def test_wait_stop_and_stats(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.create("made")
        engine.start("box", Cmd=["sleep", "60"])
        told = {
            "wait has no condition yet": engine.post("/v1.24/containers/made/wait?condition=odd"),
            "stop has no signal yet": engine.post("/v1.41/containers/box/stop?t=0&signal=odd"),
            "stats have no one-shot yet": engine.get("/v1.40/containers/made/stats?stream=0&one-shot=1")["status"],
        }
        return told

    pair.same(script, Difference("$.wait *.Error", None, ABSENT, NEWER))
