"""Time of an exec: create, start (attached, to its end) and inspect of `true` in a running container.

    sudo .venv/bin/python -m bench.exec
    sudo .venv/bin/python -m bench.exec --rounds 20 --engines husk,podman

The rounds of all engines alternate, so that a busy machine slows all of them alike; between two execs is a pause, as
between those of a user or of a health check: right after one another they profit from what the kernel has ready.
"""

import time

from bench.engines import Engine
from bench.sheet import Sheet

PAUSE = 0.05
STREAM = {"Connection": "Upgrade", "Upgrade": "tcp", "Content-Type": "application/json"}


class Target:
    """A running container of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._api = engine.connection()
        wish = {"Image": "busybox", "Cmd": ["sleep", "3600"], "HostConfig": {"NetworkMode": "none"}}
        self._id = self._api.call("POST", "/v1.40/containers/create", wish)[1]["Id"]
        self._api.call("POST", f"/v1.40/containers/{self._id}/start")

    def exec_true(self) -> float:
        """Milliseconds."""
        begun = time.perf_counter()
        wish = {"Cmd": ["true"], "AttachStdout": True, "AttachStderr": True}
        made = self._api.call("POST", f"/v1.40/containers/{self._id}/exec", wish)[1]["Id"]
        stream = self._engine.connection()
        stream.request("POST", f"/v1.40/exec/{made}/start", "{}", STREAM)
        while stream.sock.recv(65536):
            pass
        stream.close()
        if self._api.call("GET", f"/v1.40/exec/{made}/json")[1]["ExitCode"] != 0:
            raise SystemExit(f"{self._engine.name}: the exec failed")
        return (time.perf_counter() - begun) * 1000


def main() -> None:
    sheet = Sheet("exec", __doc__, engines="husk,dockerd-new,podman")
    sheet.option("rounds", 50, quick=5)
    options = sheet.read()
    with sheet.running() as running:
        targets = {engine.name: Target(engine) for engine in running}
        times: dict[str, list[float]] = {name: [] for name in targets}
        for number in range(options.rounds):
            if number % 10 == 0:
                sheet.say(f"round {number + 1} of {options.rounds}")
            for name, target in targets.items():
                time.sleep(PAUSE)
                times[name].append(target.exec_true())
        for name in targets:
            sheet.add(name, "exec of `true`", "ms", times[name])
            sheet.add(name, "exec of `true`: p95", "ms", sorted(times[name])[int(options.rounds * 0.95)])
    sheet.finish()


if __name__ == "__main__":
    main()
