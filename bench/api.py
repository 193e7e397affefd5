"""Short questions that an engine answers in a second, and the time that the slowest hundredth of them waits.

    sudo HUSK_BENCH_PEERS=/tmp/peers/bin .venv/bin/python -m bench.api --engines husk,dockerd-new
    sudo .venv/bin/python -m bench.api --containers 50 --seconds 2 --rounds 3 --engines husk,husk-metrics

`_ping`, a container's inspect, the list of images and the list of 50 running containers, on 1 and on 16 connections.
The rounds of all engines alternate, so that a busy machine slows all of them alike; the median round is told, and
the processor time of an answer, which others on the machine change less. `--engines husk,husk-metrics` tells what
`--metrics-addr` costs. h2load is Debian's (`apt install nghttp2-client`), or what bench/fetch-peers takes out of it.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.engines import Engine
from bench.peers import KEPT
from bench.sheet import Sheet

CONNECTIONS = (1, 16)


class Figures(NamedTuple):
    """One run of h2load."""

    per_second: float
    p99: float  # milliseconds
    cpu: float  # microseconds of the engine's processor time for each answer


def h2load() -> str | None:
    """The program, installed, or as bench/fetch-peers has put it there."""
    return shutil.which("h2load", path=f"{os.environ.get('PATH', os.defpath)}:{KEPT / 'bin'}")


def load(program: str, engine: Engine, path: str, connections: int, seconds: float) -> Figures:
    """As many requests as the engine answers in that time."""
    before = engine.cpu()
    with tempfile.NamedTemporaryFile(prefix="h2load-") as log:
        done = subprocess.run(
            [program, "--h1", f"-c{connections}", f"-D{seconds * 1000:.0f}ms", f"--log-file={log.name}",
             f"--base-uri=unix:{engine.socket}", f"http://docker{path}"],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"h2load failed: {done.stdout}{done.stderr}")
        times = []
        for line in Path(log.name).read_text().splitlines():
            _, status, microseconds = line.split("\t")
            if status != "200":
                raise SystemExit(f"{engine.name}: {path} answered {status}")
            times.append(int(microseconds))
    if len(times) < 10:
        raise SystemExit(f"{engine.name}: {path}: only {len(times)} answers\n{done.stdout}")
    cpu = (engine.cpu() - before) * 1e6 / len(times)
    return Figures(len(times) / seconds, statistics.quantiles(times, n=100)[98] / 1000, cpu)


def prepare(engine: Engine, count: int) -> str:
    """Run the containers; the id of one of them."""
    api = engine.connection()
    made = ""
    for number in range(count):
        wish = {"Image": "busybox", "Cmd": ["sleep", "3600"], "HostConfig": {"NetworkMode": "none"}}
        made = api.call("POST", f"/v1.41/containers/create?name=c{number}", wish)[1]["Id"]
        api.call("POST", f"/v1.41/containers/{made}/start")
    return made


def main() -> None:
    sheet = Sheet("api", __doc__, engines="husk,dockerd-new,podman")
    sheet.option("containers", 50, quick=2)
    sheet.option("seconds", 2.0, quick=0.2)
    sheet.option("rounds", 3, quick=1)
    options = sheet.read()
    if not (program := h2load()):
        raise SystemExit("there is no h2load: apt install nghttp2-client, or bench/fetch-peers DIR takes it out of it")
    with sheet.running() as running:
        targets = [(engine, prepare(engine, options.containers)) for engine in running]
        for name, path, of in (
            ("_ping", "/_ping", ""),
            ("container inspect", "/v1.41/containers/{}/json", ""),
            ("/images/json", "/v1.41/images/json", ""),
            ("/containers/json", "/v1.41/containers/json", f"{options.containers} running"),
        ):
            for connections in CONNECTIONS:
                clients = f"{connections} connection{'s' if connections > 1 else ''}"
                sheet.say(f"{name}, {clients}")
                rounds = [
                    [load(program, engine, path.format(made), connections, options.seconds) for engine, made in targets]
                    for _ in range(options.rounds)
                ]
                for (engine, _), taken in zip(targets, zip(*rounds, strict=True), strict=True):
                    what = f"{name}, {clients}"
                    sheet.add(engine, what, "/s", [each.per_second for each in taken], of=of, better="higher")
                    sheet.add(engine, f"{what}: p99", "ms", [each.p99 for each in taken], of=of)
                    sheet.add(engine, f"{what}: processor", "µs", [each.cpu for each in taken], of=of)
    sheet.finish()


if __name__ == "__main__":
    main()
