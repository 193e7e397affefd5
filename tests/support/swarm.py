"""Services for tests: the docker client to act, the API to see.

swarm.create("web", "--replicas", "2", args=["sleep", "600"])
swarm.settles("web", 2)
"""

import json
import urllib.parse
from collections.abc import Sequence
from typing import Any

from tests.support.daemon import Daemon
from tests.support.waiting import until

LABEL = "com.docker.swarm.service.name"
# Nothing in these tests is worth waiting for the default of ten seconds.
QUICK = ("--restart-delay", "0s", "--stop-grace-period", "0s")
FOREVER = ("sleep", "600")


class Swarm:
    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon

    # --- acting

    def create(self, name: str, *options: str, args: Sequence[str] = FOREVER, image: str = "busybox") -> str:
        """A service whose tasks come and go quickly; its id. Does not wait for them."""
        given = ("service", "create", "-d", "--no-resolve-image", "--name", name, *QUICK, *options, image, *args)
        return self.daemon.docker(*given).stdout.strip()

    def update(self, name: str, *options: str) -> None:
        """Change a service. The engine may write down how the last change went between the client's two calls."""

        def done() -> bool:
            asked = self.daemon.docker("service", "update", "-d", "--no-resolve-image", *options, name, check=False)
            assert asked.returncode == 0 or "update out of sequence" in asked.stderr, asked.stderr
            return asked.returncode == 0

        until(done, "a change of the service as it is")

    def remove_all(self) -> None:
        """Back to no services, and no containers of theirs."""
        for service in self.daemon.http("GET", "/services").json():
            self.daemon.http("DELETE", f"/services/{service['ID']}")
        until(lambda: not self.daemon.http("GET", "/tasks").json(), "all tasks are gone")

    # --- looking

    def inspect(self, name: str) -> dict[str, Any]:
        return self.daemon.http("GET", f"/services/{name}").json()

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """All that is known of a service's tasks, oldest first."""
        found = self.daemon.http("GET", "/tasks?filters=" + _filters(service=name)).json()
        return sorted(found, key=lambda task: task["CreatedAt"])

    def live(self, name: str) -> list[dict[str, Any]]:
        return [task for task in self.tasks(name) if task["Status"]["State"] == "running"]

    def containers(self, name: str, *, all: bool = False) -> list[str]:
        """Ids of a service's containers that run; `all` of them."""
        filters = _filters(label=f"{LABEL}={name}")
        found = self.daemon.http("GET", f"/containers/json?all={int(all)}&filters={filters}").json()
        return [container["Id"] for container in found if all or container["State"] == "running"]

    def settled(self, name: str, count: int) -> list[str]:
        """The containers of a service that is as declared: so many tasks run, each with its container; else empty."""
        tasks = self.live(name)
        wanted = sorted(task["Status"]["ContainerStatus"]["ContainerID"] for task in tasks)
        found = sorted(self.containers(name))
        slots = {task.get("Slot") for task in tasks}
        return found if len(found) == count == len(slots) and found == wanted else []

    def settles(self, name: str, count: int, deadline: float = 100.0) -> list[str]:
        return until(lambda: self.settled(name, count), f"{name} has {count} running tasks", deadline)

    def states(self, name: str) -> list[str]:
        return [task["Status"]["State"] for task in self.tasks(name)]

    def update_state(self, name: str) -> str:
        return str(self.inspect(name).get("UpdateStatus", {}).get("State", ""))

    def ps(self, name: str, *options: str) -> list[dict[str, str]]:
        """`docker service ps`, line by line."""
        done = self.daemon.docker("service", "ps", "--format", "json", "--no-trunc", *options, name)
        return [json.loads(line) for line in done.stdout.splitlines()]


def _filters(**values: str) -> str:
    return urllib.parse.quote(json.dumps({key: [value] for key, value in values.items()}))
