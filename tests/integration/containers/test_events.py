"""`docker events`: what happened, in order, to whom it may concern."""

import json
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until
from tests.support.wire import RawClient


class Listener:
    """A live stream of events, from the moment it is made."""

    def __init__(self, daemon: Daemon, query: str = "") -> None:
        self._connection = daemon.connection(20)
        self._connection.request("GET", f"/events?{query}")
        self._response = self._connection.getresponse()
        assert self._response.status == 200
        self.headers = dict(self._response.getheaders())

    def next(self) -> dict[str, Any]:
        line = self._response.readline()
        assert line, "the stream of events ended"
        event: dict[str, Any] = json.loads(line)
        return event

    def actions(self, last: str) -> list[str]:
        """Actions up to and with `last`."""
        found = [self.next()["Action"]]
        while found[-1] != last:
            found.append(self.next()["Action"])
        return found

    def rest(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._response.readlines()]

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def events(daemon: Daemon) -> Iterator[Listener]:
    listener = Listener(daemon, filters(type=["container"]))
    yield listener
    listener.close()


def filters(**fields: list[str]) -> str:
    return "filters=" + urllib.parse.quote(json.dumps(fields))


def past(daemon: Daemon, since: float, query: str = "") -> list[dict[str, Any]]:
    listener = Listener(daemon, f"since={since:.9f}&until={time.time():.9f}&{query}")
    try:
        return listener.rest()
    finally:
        listener.close()


def test_the_order_of_a_run(daemon: Daemon, events: Listener):
    daemon.docker("run", "--rm", "busybox", "true")
    assert events.actions("destroy") == ["create", "attach", "start", "die", "destroy"]


def test_networks_tell_too(daemon: Daemon):
    listener = Listener(daemon)
    daemon.docker("run", "--rm", "busybox", "true")
    seen = [(e["Type"], e["Action"]) for e in (listener.next() for _ in range(7))]
    listener.close()
    assert seen == [
        ("container", "create"),
        ("container", "attach"),
        ("network", "connect"),
        ("container", "start"),
        ("network", "disconnect"),
        ("container", "die"),
        ("container", "destroy"),
    ]


def test_the_order_of_a_stop(daemon: Daemon, events: Listener):
    daemon.docker("run", "-d", "--init", "--name", "box", "busybox", "sleep", "1000")
    daemon.docker("stop", "box")
    daemon.docker("rm", "box")
    assert events.actions("destroy") == ["create", "start", "kill", "die", "stop", "destroy"]


def test_the_order_of_a_kill_that_escalates(daemon: Daemon, events: Listener):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    daemon.docker("stop", "-t", "0", "box")
    assert events.actions("stop") == ["create", "start", "kill", "kill", "die", "stop"]


def test_the_order_of_a_restart(daemon: Daemon, events: Listener):
    daemon.docker("run", "-d", "--init", "--name", "box", "busybox", "sleep", "1000")
    daemon.docker("restart", "box")
    assert events.actions("restart") == ["create", "start", "kill", "die", "stop", "start", "restart"]


def test_pause_rename_and_kill(daemon: Daemon, events: Listener):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    daemon.docker("pause", "box")
    daemon.docker("unpause", "box")
    daemon.docker("rename", "box", "crate")
    daemon.docker("kill", "crate")
    assert events.actions("die") == ["create", "start", "pause", "unpause", "rename", "kill", "die"]


def test_the_shape_of_an_event(daemon: Daemon, events: Listener):
    begun = time.time_ns()
    container = daemon.docker("run", "-d", "--name", "box", "-l", "k=v", "busybox", "sh", "-c", "exit 5").stdout.strip()
    seen = {event["Action"]: event for event in (events.next() for _ in range(3))}
    event = seen["create"]
    assert event["Type"] == "container" and event["scope"] == "local"
    assert event["Actor"] == {"ID": container, "Attributes": {"image": "busybox", "k": "v", "name": "box"}}
    assert begun <= event["timeNano"] <= time.time_ns() and event["time"] == event["timeNano"] // 10**9
    assert "status" not in event, "the fields of old are for those who speak old versions"
    assert seen["die"]["Actor"]["Attributes"]["exitCode"] == "5"
    assert seen["die"]["Actor"]["Attributes"]["execDuration"] == "0"


def test_a_signal_is_named(daemon: Daemon, events: Listener):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    daemon.docker("kill", "-s", "HUP", "box")
    events.actions("start")
    assert events.next()["Actor"]["Attributes"]["signal"] == "1"


def test_an_old_name_is_told(daemon: Daemon, events: Listener):
    daemon.docker("create", "--name", "before", "busybox")
    daemon.docker("rename", "before", "after")
    events.actions("create")
    attributes = events.next()["Actor"]["Attributes"]
    assert (attributes["name"], attributes["oldName"]) == ("after", "/before")


def test_a_failed_start_is_no_start(daemon: Daemon, events: Listener):
    daemon.docker("run", "--rm", "busybox", "no-such-program", check=False)
    seen = events.actions("destroy")
    assert "start" not in seen and seen[:2] == ["create", "attach"]


def test_running_out_of_memory(daemon: Daemon, events: Listener):
    daemon.docker("run", "-m", "8m", "--memory-swap", "8m", "busybox", "tail", "/dev/zero", check=False)
    assert {"oom", "die"} <= set(events.actions("die"))


def test_since_and_until(daemon: Daemon):
    begun = time.time()
    daemon.docker("run", "--rm", "--net", "none", "busybox", "true")
    until(lambda: "destroy" in [e["Action"] for e in past(daemon, begun)], "it is over")
    assert [e["Action"] for e in past(daemon, begun, filters(type=["container"]))] == [
        "create", "attach", "start", "die", "destroy",
    ]  # fmt: skip
    assert past(daemon, time.time()) == []


def test_since_goes_on_live(daemon: Daemon):
    begun = time.time()
    daemon.docker("create", "--name", "early", "busybox")
    listener = Listener(daemon, f"since={begun:.9f}")
    assert listener.next()["Actor"]["Attributes"]["name"] == "early"
    daemon.docker("create", "--name", "late", "busybox")
    assert listener.next()["Actor"]["Attributes"]["name"] == "late"
    listener.close()


def test_until_ends_a_live_stream(daemon: Daemon):
    listener = Listener(daemon, f"until={time.time() + 2:.9f}")
    daemon.http("POST", "/containers/create?name=box", {"Image": "busybox"})
    assert [e["Actor"]["Attributes"].get("name") for e in listener.rest()][-1:] == ["box"]
    listener.close()


def test_old_versions_have_their_fields(daemon: Daemon):
    container = daemon.docker("create", "busybox").stdout.strip()
    event = json.loads(daemon.http("GET", f"/v1.51/events?since=1&until={time.time():.9f}").body.splitlines()[-1])
    assert (event["status"], event["id"], event["from"]) == ("create", container, "busybox")


def test_docker_events(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    lines = daemon.docker(
        "events", "--since", "1m", "--until", "0s", "-f", "container=box", "-f", "event=create"
    ).stdout
    assert "container create" in lines and "name=box" in lines


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"type": ["container"]}, 3),
        ({"type": ["image"]}, 0),
        ({"event": ["create"]}, 2),
        ({"event": ["create", "rename"]}, 3),
        ({"container": ["one-renamed"]}, 1),
        ({"container": ["two"]}, 1),
        ({"label": ["k"]}, 2),
        ({"label": ["k=v"]}, 2),
        ({"label": ["k=other"]}, 0),
        ({"image": ["busybox"]}, 3),
        ({"image": ["other"]}, 0),
        ({"scope": ["local"]}, 3),
        ({"scope": ["swarm"]}, 0),
        ({"type": ["container"], "event": ["rename"]}, 1),
    ],
)
def test_filters(daemon: Daemon, wanted: dict[str, list[str]], count: int):
    begun = time.time()
    daemon.docker("create", "--name", "one", "-l", "k=v", "busybox")
    daemon.docker("create", "--name", "two", "busybox")
    daemon.docker("rename", "one", "one-renamed")
    assert len(past(daemon, begun, filters(**wanted))) == count


def test_filter_by_id_and_prefix(daemon: Daemon):
    begun = time.time()
    container = daemon.docker("create", "busybox").stdout.strip()
    daemon.docker("create", "busybox")
    for reference in (container, container[:12]):
        assert len(past(daemon, begun, filters(container=[reference]))) == 1


@pytest.mark.parametrize("query", ["since=soon", "until=2020-13-13", "since=200&until=100", "filters={"])
def test_wrong_questions_are_400(daemon: Daemon, query: str):
    assert daemon.http("GET", f"/events?{query}").status == 400


def test_headers_come_before_the_first_event(daemon: Daemon):
    with RawClient(daemon.raw(20)) as client:
        client.request("GET", "/events")
        head = client.head()
        assert (head.status, head.headers["Content-Type"]) == (200, "application/json")


def test_json_lines_when_asked_for(daemon: Daemon):
    with RawClient(daemon.raw(20)) as client:
        client.request("GET", "/v1.52/events", headers={"Accept": "application/json-seq"})
        assert client.head().headers["Content-Type"] == "application/json-seq"
        daemon.docker("create", "busybox")
        assert b"\x1e{" in client.read_until(b"\n\r\n")


def test_many_listeners_and_those_who_leave(daemon: Daemon):
    listeners = [Listener(daemon) for _ in range(10)]
    for leaver in listeners[:5]:
        leaver.close()
    daemon.docker("create", "--name", "box", "busybox")
    for listener in listeners[5:]:
        assert listener.next()["Action"] == "create"
        listener.close()
    until(lambda: daemon.http("GET", "/info").json()["NEventsListener"] == 0, "nobody listens any more")


def test_attach_resize_and_detach(daemon: Daemon, events: Listener):
    body = {"Image": "busybox", "Cmd": ["cat"], "Tty": True, "OpenStdin": True}
    container = daemon.http("POST", "/containers/create", body).json()["Id"]
    daemon.http("POST", f"/containers/{container}/start")
    with RawClient(daemon.raw(20)) as client:
        client.request("POST", f"/containers/{container}/attach?stream=1&stdin=1&stdout=1", headers={"Upgrade": "tcp"})
        client.head()
        daemon.http("POST", f"/containers/{container}/resize?h=10&w=20")
        client.socket.sendall(b"\x10\x11")
        client.read_to_end()
    assert events.actions("detach") == ["create", "start", "attach", "resize", "detach"]
