"""Output of a container: logs with every option, and attach."""

import socket
from typing import Any

from husk.engine.model.clock import parse_rfc3339
from tests.parity.differences import NEWER, refused
from tests.support.parity import ANY, API, Difference, Engine, Pair
from tests.support.wire import RawClient, stream_of

OUTPUT = "echo one; echo two >&2; sleep 0.2; printf three; sleep 0.2; echo; printf 'no newline'"


def frames(body: bytes) -> list[list[Any]]:
    """Return the bytes of each stream: where a write is cut, and which stream comes first, is chance."""
    return [[stream, text] for stream in (1, 2) if (text := stream_of(body, stream).decode(errors="replace"))]


def test_logs(pair: Pair) -> None:
    queries: list[dict[str, object]] = [
        {"stdout": 1, "stderr": 1},
        {"stdout": 1},
        {"stderr": 1},
        {"stdout": 1, "tail": 2},
        {"stdout": 1, "stderr": 1, "tail": 1, "timestamps": 1},
        {"stdout": 1, "tail": 0},
        {"stdout": 1, "tail": "all"},
        {"stdout": 1, "tail": "x"},
        {"stdout": 1, "tail": "+1"},
        {"stdout": 1, "tail": -1},
        {"stdout": 1, "timestamps": 1},
        {"stdout": 1, "since": 1},
        {"stdout": 1, "since": 4_000_000_000},
        {"stdout": 1, "until": 1},
        {"stdout": 1, "until": 4_000_000_000},
        {"stdout": 1, "since": "x"},
        {"stdout": 1, "until": "x"},
        {"stdout": 1, "follow": 1},
        {"stdout": 1, "details": 1},
        {},
    ]

    def script(engine: Engine) -> object:
        engine.shell("box", OUTPUT, Labels={"a": "b"})
        engine.wait("box")
        told: dict[str, object] = {}
        for query in queries:
            answer = engine.http("GET", "/containers/box/logs", **query)
            shown = frames(answer.body) if answer.status == 200 else answer.message
            told[str(query)] = [answer.status, answer.headers.get("Content-Type"), shown]
        engine.shell("tty", OUTPUT, Tty=True)
        engine.wait("tty")
        for query in queries[:5]:
            answer = engine.http("GET", "/containers/tty/logs", **query)
            told[f"tty {query}"] = [answer.status, answer.headers.get("Content-Type"), answer.body.decode()]
        engine.create("made")
        told["never started"] = engine.get("/containers/made/logs", stdout=1)
        engine.shell("silent", "echo lost", host={"LogConfig": {"Type": "none"}})
        told["driver none"] = engine.get("/containers/silent/logs", stdout=1)
        told["client"] = engine.docker("logs", "--tail", "2", "box")
        return told

    pair.same(
        script,
        Difference("$.*(1)", None, "application/vnd.docker.raw-stream", NEWER),
        refused("$.*'x'*(0)", 500, 400),
        refused("$.*'x'*(2)", 'strconv.ParseInt: parsing "x": invalid syntax', ANY),
    )


def test_logs_since_and_until_a_line(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.shell("box", "for i in 1 2 3; do echo $i; sleep 0.3; done")
        engine.wait("box")
        lines = engine.http("GET", "/containers/box/logs?stdout=1&timestamps=1").body
        second = frames(lines)[0][1].splitlines()[1].split(" ")[0]
        parsed = parse_rfc3339(second)
        moment = f"{parsed // 10**9}.{parsed % 10**9:09}"
        return [
            frames(engine.http("GET", "/containers/box/logs", stdout=1, since=moment).body),
            frames(engine.http("GET", "/containers/box/logs", stdout=1, until=moment).body),
            engine.docker("logs", "--since", second, "box")["stdout"],
            engine.docker("logs", "--until", second, "box")["stdout"],
        ]

    pair.same(script)


def test_logs_of_long_and_binary_lines(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.shell("box", r"head -c 40000 /dev/zero | tr '\0' x; echo; printf 'a\377\000b\n\n\n'; echo end")
        engine.wait("box")
        whole = engine.http("GET", "/containers/box/logs?stdout=1").body
        last = engine.http("GET", "/containers/box/logs?stdout=1&tail=3").body
        return [frames(whole), frames(last)]

    pair.same(script)


def test_attach(pair: Pair) -> None:
    def talk(engine: Engine, name: str, query: str, sent: bytes, upgrade: bool) -> list[Any]:
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        channel.settimeout(20)
        channel.connect(str(engine.client.socket_path))
        with RawClient(channel) as client:
            headers = {"Upgrade": "tcp", "Connection": "Upgrade"} if upgrade else {}
            client.request("POST", f"{API}/containers/{name}/attach?{query}", headers=headers)
            head = client.head()
            if head.status >= 300:
                return [head.status, head.reason]
            state = engine.get(f"/containers/{name}/json")["body"]["State"]["Status"]
            if state == "created":
                engine.http("POST", f"/containers/{name}/start")
            if sent:
                channel.sendall(sent)
                if not name.startswith("tty"):  # for dockerd the end of the input of a terminal is a wish to detach
                    client.half_close()
            body = client.read_to_end()
            shown = {k: head.headers.get(k) for k in ("Content-Type", "Connection", "Upgrade")}
            return [head.status, head.reason, shown, body]

    def script(engine: Engine) -> object:
        told: dict[str, object] = {}
        both = "stream=1&stdin=1&stdout=1&stderr=1"
        engine.create("cat", Cmd=["cat"], OpenStdin=True, StdinOnce=True)
        *head, body = talk(engine, "cat", both, b"to and fro\n", True)
        told["upgraded"] = [*head, frames(body)]
        engine.create("out", Cmd=["sh", "-c", "echo out; sleep 0.2; echo err >&2; exit 3"])
        *head, body = talk(engine, "out", both, b"", False)
        told["plain"] = [*head, frames(body)]
        told["logs"] = frames(talk(engine, "out", "logs=1&stdout=1&stderr=1", b"", False)[-1])
        engine.create("tty", Cmd=["sh", "-c", "read x; echo got $x"], Tty=True, OpenStdin=True, StdinOnce=True)
        *head, body = talk(engine, "tty", both, b"typed\n", True)
        told["tty"] = [*head, body.decode()]
        told["nobody"] = talk(engine, "nobody", both, b"", False)
        told["bad keys"] = talk(engine, "out", both + "&detachKeys=ctrl-nope", b"", False)
        told["exit"] = [engine.wait(name) for name in ("cat", "out", "tty")]
        return told

    pair.same(script)
