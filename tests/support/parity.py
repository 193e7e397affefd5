"""The comparison of two engines: the same script runs against both, and what it returns must be equal.

    def script(engine: Engine) -> object:
        engine.create("c", Cmd=["true"])
        return engine.get("/containers/c/json")

    pair.same(script, Difference("$.body.Driver", dockerd="overlay2", husk="overlay", why="..."))

What cannot be equal (ids, times, addresses, paths) is replaced by words first. A difference that is meant stands in a
table with both values and its reason; one that no longer shows up fails the test too, so the tables stay true.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.support.client import Answer, Client

API = "/v1.41"
ABSENT = "<absent>"
ANY = "*"

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"
_REPLACED = [
    (re.compile(rf"(?!0001-01-01T){_TIME}"), "<time>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{14}…"), "<id>"),
    (re.compile(r"\b(Less than a second|(\d+|About a) (second|minute)s?)\b"), "<duration>"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "<short id>"),
    (re.compile(r"\b(10\.20\d\.\d{1,3})\.1\b"), "<gateway>"),
    (re.compile(r"\b10\.20\d\.\d{1,3}\.\d{1,3}\b"), "<address>"),
    (re.compile(r"\b02:42(:[0-9a-f]{2}){4}\b"), "<mac>"),
    # Everything after this is what the OCI runtime says: runc and crun have words of their own.
    (re.compile(r"(?is)(failed to create (shim task|task for container): )*OCI runtime \w+ failed: .*"), "<runtime>"),
]
_NUMBERS = {"Pid", "Created", "CreatedAt", "time", "timeNano", "mtime"}

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Something of all that an image says.
RICH_IMAGE: dict[str, object] = {
    "User": "daemon",
    "Env": [PATH, "FROM_IMAGE=1", "BOTH=image"],
    "Entrypoint": ["sh", "-c"],
    "Cmd": ["echo from image"],
    "WorkingDir": "/work",
    "Labels": {"from": "image", "both": "image"},
    "Volumes": {"/data": {}},
    "ExposedPorts": {"80/tcp": {}},
    "StopSignal": "SIGUSR1",
    "Healthcheck": {"Test": ["CMD", "true"], "Interval": 3_600_000_000_000, "Retries": 2},
    "Shell": ["/bin/sh", "-ec"],
}


class Difference(NamedTuple):
    """A place where Husk is meant to differ. In texts `*` and `?` stand for anything; ANY for a value of any type."""

    path: str
    dockerd: object
    husk: object
    why: str


class Engine:
    """One of the two, with the words that scripts are written in."""

    def __init__(self, client: Client, ids: dict[str, str]) -> None:
        self.client = client
        self.ids = dict(ids)

    # -- raw HTTP --------------------------------------------------------------------------------------------------

    def http(self, method: str, path: str, body: object = None, /, **query: object) -> Answer:
        if query:
            path += "?" + urlencode(query)
        return self.client.http(method, path if re.match(r"/v\d", path) else API + path, body)

    def ask(self, method: str, path: str, body: object = None, /, **query: object) -> dict[str, Any]:
        """Status and body: JSON taken apart, anything else as text."""
        return told(self.http(method, path, body, **query))

    def get(self, path: str, /, **query: object) -> dict[str, Any]:
        return self.ask("GET", path, **query)

    def post(self, path: str, body: object = None, /, **query: object) -> dict[str, Any]:
        return self.ask("POST", path, body, **query)

    # -- containers ------------------------------------------------------------------------------------------------

    def create(self, name: str, image: str = "parity", host: object = None, **config: object) -> str:
        body = {"Image": image, **config} | ({"HostConfig": host} if host is not None else {})
        answer = self.http("POST", f"/containers/create?name={name}", body)
        assert answer.status == 201, f"create {name}: {answer.body!r}"
        made: str = answer.json()["Id"]
        self.ids[made] = f"<id of {name}>"
        self.ids[made[:12]] = f"<short id of {name}>"
        return made

    def start(self, name: str, image: str = "parity", host: object = None, **config: object) -> str:
        made = self.create(name, image, host, **config)
        answer = self.http("POST", f"/containers/{name}/start")
        assert answer.status == 204, f"start {name}: {answer.body!r}"
        return made

    def shell(self, name: str, script: str, host: object = None, **config: object) -> str:
        return self.start(name, "parity", host, Cmd=["sh", "-c", script], **config)

    def wait(self, name: str) -> int:
        return int(self.http("POST", f"/containers/{name}/wait").json()["StatusCode"])

    def output(self, name: str, script: str, host: object = None, **config: object) -> str:
        """Return the output of a script in a container, which is gone then."""
        self.start(name, "parity", host, Cmd=["sh", "-c", script], Tty=True, **config)
        self.wait(name)
        text = self.http("GET", f"/containers/{name}/logs?stdout=1&stderr=1").body.decode().replace("\r\n", "\n")
        self.remove(name)
        return text

    def remove(self, *names: str) -> None:
        for name in names:
            self.http("DELETE", f"/containers/{name}?force=1&v=1")

    # -- the docker client -----------------------------------------------------------------------------------------

    def docker(self, *arguments: str, input: str | None = None) -> dict[str, Any]:
        done = self.client.docker(*arguments, check=False, input=input)
        return {"exit": done.returncode, "stdout": done.stdout, "stderr": done.stderr}

    # -- events ----------------------------------------------------------------------------------------------------

    def now(self) -> str:
        """For `since` and `until`."""
        nanoseconds = time.time_ns()
        return f"{nanoseconds // 10**9}.{nanoseconds % 10**9:09}"

    def events(self, since: str, **filters: list[str]) -> list[dict[str, Any]]:
        query = {"since": since, "until": self.now()} | ({"filters": json.dumps(filters)} if filters else {})
        lines = self.http("GET", "/events", **query).body.decode().splitlines()
        return [json.loads(line) for line in lines]

    # -- what came of it -------------------------------------------------------------------------------------------

    def normalise(self, value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {self._text(k): self.normalise(v, k) for k, v in value.items()}
        if key == "Mounts" and isinstance(value, list):
            value = sorted(value, key=lambda mount: str(mount.get("Destination")))  # dockerd's order is that of a map
        if isinstance(value, list | tuple):
            return [self.normalise(item, key) for item in value]
        if isinstance(value, str):
            # Messages began with a capital letter until dockerd 24; their words are compared, not their letters.
            return self._text(value.lower() if key in ("message", "stderr") else value)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0 and key in _NUMBERS:
            return "<number>"
        return value

    def _text(self, text: str) -> str:
        text = text.replace(str(self.client.directory), "<directory>")
        for known in sorted(self.ids, key=len, reverse=True):
            text = text.replace(known, self.ids[known])
        for pattern, word in _REPLACED:
            text = pattern.sub(word, text)
        return text


class Pair:
    """dockerd and Husk, side by side."""

    def __init__(self, dockerd: Client, husk: Client, ids: dict[str, str]) -> None:
        self.dockerd = dockerd
        self.husk = husk
        self._ids = ids

    def same(self, script: Callable[[Engine], object], *expected: Difference) -> None:
        """Run the script against both at once and compare what it returns."""
        with ThreadPoolExecutor(2) as threads:
            runs = [threads.submit(self._run, script, client) for client in (self.dockerd, self.husk)]
            theirs, ours = (run.result() for run in runs)
        compare(theirs, ours, *expected)

    def _run(self, script: Callable[[Engine], object], client: Client) -> object:
        engine = Engine(client, self._ids)
        try:
            return engine.normalise(script(engine))
        finally:
            for container in engine.http("GET", "/containers/json?all=1").json():
                engine.remove(container["Id"])


def compare(dockerd: object, husk: object, *expected: Difference) -> None:
    theirs, ours = dict(flatten(dockerd)), dict(flatten(husk))
    used = []
    problems = []
    for path in sorted(theirs.keys() | ours.keys()):
        one, other = theirs.get(path, ABSENT), ours.get(path, ABSENT)
        if one == other:
            continue
        for difference in expected:
            if _fits(difference, path, one, other):
                used.append(difference)
                break
        else:
            problems.append(f"{path}\n    dockerd: {one!r}\n    husk:    {other!r}")
    problems += [f"{d.path}: no longer differs as said ({d.why})" for d in expected if d not in used]
    assert not problems, "\n" + "\n".join(problems)


def told(answer: Answer) -> dict[str, Any]:
    try:
        body: object = answer.json()
    except ValueError:
        body = answer.body.decode(errors="replace")
    return {"status": answer.status, "body": body}


def flatten(value: object, path: str = "$") -> Iterator[tuple[str, object]]:
    """(path, value) of every leaf; an empty object or list is a leaf."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flatten(item, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from flatten(item, f"{path}({number})")
    else:
        yield path, value


def lines(text: str) -> dict[str, bool]:
    """Text whose lines are compared each for itself, wherever they stand."""
    return dict.fromkeys(text.splitlines(), True)


def _fits(difference: Difference, path: str, dockerd: object, husk: object) -> bool:
    return _matches(difference.path, path) and _matches(difference.dockerd, dockerd) and _matches(difference.husk, husk)


def _matches(wanted: object, found: object) -> bool:
    if not isinstance(wanted, str) or not isinstance(found, str):
        return wanted in (found, ANY)
    return re.fullmatch(re.escape(wanted).replace(r"\*", ".*").replace(r"\?", "."), found, re.DOTALL) is not None
