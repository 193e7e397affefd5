"""How many short questions does an engine answer in a second, and how long does the slowest hundredth of them wait?

    sudo HUSK_BENCH_PEERS=/tmp/peers/bin .venv/bin/python bench/api.py husk dockerd-new
    sudo .venv/bin/python bench/api.py --containers 50 --seconds 2 --rounds 3 husk dockerd

`_ping`, a container's inspect, the list of images and the list of 50 running containers, on 1 and on 16 connections.
The rounds of all engines alternate, so that a busy machine slows all of them alike; the median round is told, and
the processor time of an answer, which others on the machine change less. h2load is
Debian's (`apt install nghttp2-client`). Where nothing may be installed, take it out of its packages:

    apt-get download nghttp2-client libnghttp2-14 libev4 libc-ares2 libjemalloc2
    for package in *.deb; do dpkg -x "$package" /tmp/h2load; done
    export H2LOAD=/tmp/h2load/usr/bin/h2load LD_LIBRARY_PATH=/tmp/h2load/usr/lib/x86_64-linux-gnu
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from engines import Engine, engines

H2LOAD = os.environ.get("H2LOAD") or shutil.which("h2load") or ""
CONNECTIONS = (1, 16)


class Figures(NamedTuple):
    """One run of h2load."""

    per_second: float
    p99: float  # milliseconds
    cpu: float  # microseconds of the engine's processor time for each answer


def load(engine: Engine, path: str, connections: int, seconds: float) -> Figures:
    """As many requests as the engine answers in that time."""
    before = engine.cpu()
    with tempfile.NamedTemporaryFile(prefix="h2load-") as log:
        done = subprocess.run(
            [H2LOAD, "--h1", f"-c{connections}", f"-D{seconds:g}", f"--log-file={log.name}",
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
        made = api.call("POST", f"/v1.44/containers/create?name=c{number}", wish)[1]["Id"]
        api.call("POST", f"/v1.44/containers/{made}/start")
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engines", nargs="*", default=["husk", "dockerd"])
    parser.add_argument("--containers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not H2LOAD:
        raise SystemExit("there is no h2load: apt install nghttp2-client, or see this file's first lines")
    with engines(options.engines) as running:
        titles = [engine.title() for engine in running]
        ids = [prepare(engine, options.containers) for engine in running]
        print(f"{'answers per second (p99, cpu)':38}" + "".join(f"{title:>32}" for title in titles) + f"{'ratio':>8}")
        for name, path in (
            ("_ping", "/_ping"),
            ("container inspect", "/v1.44/containers/{}/json"),
            ("/images/json", "/v1.44/images/json"),
            (f"/containers/json, {options.containers} running", "/v1.44/containers/json"),
        ):
            for connections in CONNECTIONS:
                rounds = [
                    [
                        load(engine, path.format(made), connections, options.seconds)
                        for engine, made in zip(running, ids, strict=True)
                    ]
                    for _ in range(options.rounds)
                ]
                shown = [
                    Figures(*(statistics.median(values) for values in zip(*each, strict=True)))
                    for each in zip(*rounds, strict=True)
                ]
                ratio = f"{shown[0].per_second / shown[1].per_second:7.2f}x" if len(shown) > 1 else ""
                cells = "".join(f"{f.per_second:9,.0f} ({f.p99:6.2f} ms, {f.cpu:6.0f} us)" for f in shown)
                print(f"{name + ', ' + str(connections):38}{cells}{ratio}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
