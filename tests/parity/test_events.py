"""Events about what happens: actions, attributes, order."""

import json
from typing import Any

from tests.parity.differences import refused
from tests.support.parity import ABSENT, Difference, Engine, Pair


def shown(event: dict[str, Any]) -> object:
    attributes = dict(event["Actor"]["Attributes"])
    if "execDuration" in attributes:
        attributes["execDuration"] = "<seconds>"
    return {**event, "Actor": {**event["Actor"], "Attributes": attributes}}


def brief(event: dict[str, Any]) -> str:
    return f"{event['Type']} {event['Action']}"


def test_events_of_a_life(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        since = engine.now()
        engine.start("box", Cmd=["sleep", "60"], Labels={"l": "v"}, host={"NetworkMode": "none"})
        engine.http("POST", "/containers/box/pause")
        engine.http("POST", "/containers/box/unpause")
        engine.http("POST", "/containers/box/rename?name=crate")
        engine.http("POST", "/containers/crate/rename?name=box")
        engine.http("POST", "/containers/box/kill?signal=USR1")
        engine.http("POST", "/containers/box/stop?t=0")
        engine.http("POST", "/containers/box/start")
        engine.http("POST", "/containers/box/restart?t=0")
        engine.http("POST", "/containers/box/update", {"CpuShares": 100})
        engine.http("POST", "/containers/box/kill")
        engine.wait("box")
        engine.http("DELETE", "/containers/box")
        return [shown(e) for e in engine.events(since, type=["container"])]

    pair.same(script, Difference("*.execDuration", ABSENT, "<seconds>", "dockerd 23 tells how long it ran"))


def test_events_of_networks_and_volumes(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        since = engine.now()
        engine.http("POST", "/volumes/create", {"Name": "vol"})
        engine.start("box", Cmd=["sleep", "60"], host={"Binds": ["vol:/v"]})
        engine.remove("box")
        engine.http("DELETE", "/volumes/vol")
        engine.http("POST", "/networks/create", {"Name": "net"})
        engine.http("DELETE", "/networks/net")
        events = engine.events(since)
        network = [shown(e) for e in events if e["Type"] == "network"]
        # dockerd 20.10 tells again of the creation of a volume that was there when a container wants it.
        volume = list({e["Action"]: shown(e) for e in events if e["Type"] == "volume"}.values())
        return {"network": network, "volume": volume}

    pair.same(script)


def test_events_of_exec_and_files(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.start("box", Cmd=["sleep", "60"])
        since = engine.now()
        engine.docker("exec", "box", "sh", "-c", "exit 3")
        engine.docker("exec", "-d", "box", "true")
        engine.docker("top", "box")
        engine.docker("cp", "box:/etc/passwd", "-")
        engine.http("GET", "/containers/box/export")
        engine.docker("commit", "-q", "box", "made:1")
        engine.docker("rmi", "made:1")
        events = engine.events(since, type=["container"])
        return sorted(json.dumps(engine.normalise(shown(e)), sort_keys=True) for e in events)

    pair.same(script)


def test_events_of_images(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        since = engine.now()
        engine.docker("tag", "parity", "two:1")
        engine.docker("tag", "parity", "two:2")
        engine.docker("rmi", "two:1", "two:2")
        engine.create("box")
        engine.docker("commit", "-m", "why", "box", "made:1")
        engine.docker("tag", "made:1", "made:2")
        engine.docker("rmi", "made:1")
        engine.docker("rmi", "made:2")
        # dockerd 25 tells of the creation of an image by commit, too.
        return [shown(e) for e in engine.events(since, type=["image"]) if e["Action"] != "create"]

    pair.same(script)


def test_filters_of_events(pair: Pair) -> None:
    wanted: list[dict[str, list[str]]] = [
        {"event": ["start"]}, {"event": ["start", "die"]}, {"container": ["box"]}, {"container": ["other"]},
        {"image": ["parity"]}, {"image": ["rich"]}, {"label": ["l"]}, {"label": ["l=v"]}, {"label": ["l=w"]},
        {"type": ["network"]}, {"type": ["container"], "event": ["die"]}, {"scope": ["local"]}, {"scope": ["swarm"]},
        {"daemon": ["x"]}, {"volume": ["v"]}, {"network": ["none"]}, {"nonsense": ["x"]}, {"event": ["exec_die"]},
    ]  # fmt: skip

    def script(engine: Engine) -> object:
        since = engine.now()
        engine.start("box", Cmd=["true"], Labels={"l": "v"}, host={"NetworkMode": "none"})
        engine.wait("box")
        engine.start("other", "rich", Cmd=["true"], host={"NetworkMode": "none"})
        engine.wait("other")
        engine.remove("box", "other")
        until = engine.now()
        told = {}
        for each in wanted:
            answer = engine.http("GET", "/events", since=since, until=until, filters=json.dumps(each))
            lines = answer.body.decode().splitlines()
            told[json.dumps(each)] = [answer.status, sorted(brief(json.loads(x)) for x in lines if '"Type"' in x)]
        told["until before since"] = [engine.http("GET", "/events", since=until, until=since).status, []]
        told["bad since"] = [engine.http("GET", "/events", since="x").status, []]
        return told

    pair.same(
        script,
        refused("$.bad since(0)", 500, 400),
    )
