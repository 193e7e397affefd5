"""Tasks, monitors and the daemon are killed at random; every time the service comes back to what was declared.

It takes half a minute; HUSK_CHAOS_SECONDS=300 makes it longer, HUSK_TEST_SEED repeats a run.
"""

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.services.test_endpoints import SERVER, ask
from tests.integration.test_crash import monitor_of, nothing_without_an_owner
from tests.support.free_ports import free_port
from tests.support.swarm import Swarm
from tests.support.waiting import until

SECONDS = float(os.environ.get("HUSK_CHAOS_SECONDS", "30"))
# How long a service may take from any disturbance to its declared state, on a machine that does much else.
BOUND = 60.0
REPLICAS = 4


class Chaos:
    def __init__(self, swarm: Swarm, chance: random.Random) -> None:
        self.swarm = swarm
        self.random = chance
        self.replicas = REPLICAS
        self.done: list[str] = []

    def disturb(self) -> None:
        """Run one to three faults, one right after the other."""
        for _ in range(self.random.randint(1, 3)):
            deed = self.random.choice(
                [
                    self.kill_task,
                    self.kill_monitor,
                    self.remove,
                    self.restart,
                    self.start_old,
                    self.flush_rules,
                    self.kill_daemon,
                    self.change,
                ]
            )
            self.done.append(deed.__name__)
            deed()

    def victim(self) -> str:
        return self.random.choice(self.swarm.containers("web") or [""])

    def gone(self, container: str) -> None:
        until(lambda: container not in self.swarm.containers("web"), "it is seen to end")

    def kill_task(self) -> None:
        if (container := self.victim()) and (pid := self.pid(container)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.gone(container)

    def kill_monitor(self) -> None:
        if (container := self.victim()) and (pid := self.pid(container)):
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                monitor = monitor_of(pid)
                if "conmon" in Path(f"/proc/{monitor}/comm").read_text():
                    os.kill(monitor, signal.SIGKILL)
                    self.gone(container)

    def pid(self, container: str) -> int:
        answer = self.swarm.daemon.http("GET", f"/containers/{container}/json")
        return int(answer.json()["State"]["Pid"]) if answer.status == 200 else 0

    def remove(self) -> None:
        if container := self.victim():
            self.swarm.daemon.http("DELETE", f"/containers/{container}?force=1")

    def restart(self) -> None:
        if container := self.victim():
            self.swarm.daemon.http("POST", f"/containers/{container}/restart?t=0")

    def start_old(self) -> None:
        """Bring one back that was replaced."""
        live = set(self.swarm.containers("web"))
        if old := [container for container in self.swarm.containers("web", all=True) if container not in live]:
            self.swarm.daemon.http("POST", f"/containers/{self.random.choice(old)}/start")

    def flush_rules(self) -> None:
        table = self.swarm.daemon.config.nft_table + self.random.choice(["", "-lb"])
        subprocess.run(["nft", "flush", "table", "ip", table], capture_output=True)

    def kill_daemon(self) -> None:
        container = self.victim()
        pid = self.pid(container) if container else 0
        self.swarm.daemon.kill9()
        if pid and self.random.random() < 0.5:
            # Something ends while nobody looks.
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                os.kill(self.random.choice([pid, monitor_of(pid)]), signal.SIGKILL)
        self.swarm.daemon.start()

    def change(self) -> None:
        if self.random.random() < 0.5:
            self.replicas = self.random.randint(1, REPLICAS + 2)
            self.swarm.daemon.docker("service", "scale", "-d", f"web={self.replicas}", check=False)
            self.replicas = self.swarm.inspect("web")["Spec"]["Mode"]["Replicated"]["Replicas"]
        else:
            self.swarm.daemon.docker(
                "service",
                "update",
                "-d",
                "--force",
                "--no-resolve-image",
                "--update-parallelism",
                "0",
                "web",
                check=False,
            )


@pytest.mark.timeout(SECONDS * 4 + 90)
def test_a_service_survives_everything(fresh_swarm: Swarm, chance: random.Random) -> None:
    swarm = fresh_swarm
    port = free_port()
    options = ("--update-monitor", "100ms", "--update-failure-action", "continue", "--publish", f"{port}:80")
    swarm.create("web", "--replicas", str(REPLICAS), *options, args=SERVER)
    swarm.settles("web", REPLICAS)
    chaos = Chaos(swarm, chance)
    worst = 0.0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        chaos.disturb()
        begun = time.monotonic()
        try:
            swarm.settles("web", chaos.replicas, deadline=BOUND)
        except AssertionError as error:
            history = [(t["ID"], t["Slot"], t["DesiredState"], t["Status"]) for t in swarm.tasks("web")]
            running = [container[:12] for container in swarm.containers("web")]
            raise AssertionError(f"{error} ({chaos.done[-6:]}): {running} of {history}") from error
        worst = max(worst, time.monotonic() - begun)
    # Nothing moves any more, and nothing is left of all those that ended.
    until(lambda: all(t["Status"]["State"] == "running" or t["DesiredState"] == "shutdown" for t in swarm.tasks("web")),
          "every task runs or is history")  # fmt: skip
    seen: set[str] = set()

    def all_answer() -> bool:
        # The last update may still be about to replace what runs now.
        stable = swarm.settled("web", chaos.replicas)
        seen.add(ask(port))
        return bool(stable) and {container[:12] for container in stable} <= seen

    until(all_answer, "each is reached")
    nothing_without_an_owner(swarm.daemon)
    print(f"{len(chaos.done)} disturbances, back after {worst:.1f} s at most")
