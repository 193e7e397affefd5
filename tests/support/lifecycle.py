"""The life of containers for tests: over bare HTTP, a word each."""

from typing import Any

from tests.support.daemon import Answer, Daemon
from tests.support.waiting import until
from tests.support.wire import RawClient

IGNORES_TERM = "trap '' TERM; echo ready; while true; do sleep 0.05; done"
ENDS_ON_TERM = "trap 'exit 5' TERM; trap 'exit 6' USR1; echo ready; while true; do sleep 0.02; done"


def create(daemon: Daemon, *command: str, name: str = "", host: dict[str, Any] | None = None, **config: Any) -> str:
    body = {"Image": "busybox", "Cmd": list(command) or ["sleep", "1000"], "HostConfig": host or {}, **config}
    answer = daemon.http("POST", f"/containers/create?name={name}", body)
    assert answer.status == 201, answer.body
    return str(answer.json()["Id"])


def post(daemon: Daemon, container: str, verb: str) -> Answer:
    return daemon.http("POST", f"/containers/{container}/{verb}")


def started(daemon: Daemon, *command: str, name: str = "", host: dict[str, Any] | None = None, **config: Any) -> str:
    container = create(daemon, *command, name=name, host=host, **config)
    answer = post(daemon, container, "start")
    assert answer.status == 204, answer.body
    return container


def ready(daemon: Daemon, script: str, **options: Any) -> str:
    """A container whose script has printed `ready`."""
    container = started(daemon, "sh", "-c", script, **options)
    until(lambda: b"ready" in logs(daemon, container), "the script is ready")
    return container


def logs(daemon: Daemon, container: str) -> bytes:
    return daemon.http("GET", f"/containers/{container}/logs?stdout=1&stderr=1").body


def inspect(daemon: Daemon, container: str) -> dict[str, Any]:
    answer = daemon.http("GET", f"/containers/{container}/json")
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


def state(daemon: Daemon, container: str) -> dict[str, Any]:
    found: dict[str, Any] = inspect(daemon, container)["State"]
    return found


def status(daemon: Daemon, container: str) -> str:
    return str(state(daemon, container)["Status"])


def ended(daemon: Daemon, container: str) -> int:
    """The exit code, once it is there."""
    return int(post(daemon, container, "wait").json()["StatusCode"])


def wait_head(daemon: Daemon, container: str, condition: str) -> RawClient:
    """A wait whose headers have come."""
    client = RawClient(daemon.raw(20))
    client.request("POST", f"/v1.50/containers/{container}/wait?condition={condition}")
    head = client.head()
    assert (head.status, head.headers["Content-Type"]) == (200, "application/json")
    return client
