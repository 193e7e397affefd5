"""How long does a container take, and what does the engine cost? Husk beside dockerd and podman, in one run.

    .venv/bin/python bench/containers.py [--rounds 20] [--engines husk,dockerd,podman] [--many 50]

Medians in milliseconds; compare ratios within one run, machines differ. Needs root.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from engines import IMAGE, Engine, UnixConnection, engines

API = "/v1.40"


def cycle(connection: UnixConnection, network: str) -> list[float]:
    """Milliseconds of create, start, wait, delete, and of all."""
    marks = [time.perf_counter()]
    body = {"Image": IMAGE, "Cmd": ["true"], "HostConfig": {"NetworkMode": network}}
    container = connection.call("POST", f"{API}/containers/create", body)[1]["Id"]
    marks.append(time.perf_counter())
    for method, path in (("POST", "/start"), ("POST", "/wait"), ("DELETE", "")):
        connection.call(method, f"{API}/containers/{container}{path}")
        marks.append(time.perf_counter())
    steps = [(after - before) * 1e3 for before, after in itertools.pairwise(marks)]
    return [*steps, sum(steps)]


def api_cycles(engine: Engine, network: str, rounds: int) -> str:
    connection = engine.connection()
    cycle(connection, network)
    columns = zip(*(cycle(connection, network) for _ in range(rounds)), strict=True)
    create, start, wait, delete, total = (statistics.median(column) for column in columns)
    return f"{total:.0f} ms ({create:.0f} / {start:.0f} / {wait:.0f} / {delete:.0f})"


def docker_run(engine: Engine, network: str, rounds: int) -> str:
    command = ["docker", "run", "--rm", "--net", network, IMAGE, "true"]
    environment = {**os.environ, "DOCKER_HOST": f"unix://{engine.socket}"}
    times = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        subprocess.run(command, env=environment, check=True)
        times.append((time.perf_counter() - begin) * 1e3)
    return f"{statistics.median(times[1:]):.0f} ms"


def many(engine: Engine, count: int) -> dict[str, str]:
    """Start `count` bridged containers with 8 clients, look at memory and listing, stop and remove them."""

    def each(work: Callable[[UnixConnection, str], object], items: list[str]) -> tuple[float, list[object]]:
        begin = time.perf_counter()
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda item: work(engine.connection(), item), items))
        return time.perf_counter() - begin, results

    def start(connection: UnixConnection, name: str) -> str:
        body = {"Image": IMAGE, "Cmd": ["sleep", "600"], "HostConfig": {"NetworkMode": "bridge"}}
        container = str(connection.call("POST", f"{API}/containers/create?name={name}", body)[1]["Id"])
        connection.call("POST", f"{API}/containers/{container}/start")
        return container

    idle = engine.pss()
    started, ids = each(start, [f"many-{number}" for number in range(count)])
    containers = [str(item) for item in ids]
    loaded = engine.pss()
    connection = engine.connection()
    begin = time.perf_counter()
    for _ in range(50):
        connection.call("GET", f"{API}/containers/json")
    listing = (time.perf_counter() - begin) / 50 * 1e3
    stopped, _ = each(lambda c, i: c.call("POST", f"{API}/containers/{i}/stop?t=0"), containers)
    removed, _ = each(lambda c, i: c.call("DELETE", f"{API}/containers/{i}"), containers)
    return {
        "memory idle": f"{idle:.0f} MiB",
        f"start {count} by 8 clients": f"{started:.2f} s",
        f"memory with {count} running": f"{loaded:.0f} MiB",
        f"list {count}": f"{listing:.1f} ms",
        f"stop -t0 of {count}": f"{stopped:.2f} s",
        f"remove {count}": f"{removed:.2f} s",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--many", type=int, default=50)
    parser.add_argument("--engines", default="husk,dockerd,podman")
    options = parser.parse_args()
    with engines(options.engines.split(",")) as running:
        rows: dict[str, list[str]] = {}
        for engine in running:
            results = {
                f"API cycle, {network} (create / start / wait / delete)": api_cycles(engine, network, options.rounds)
                for network in ("none", "bridge", "host")
            }
            results |= {
                f"docker run --rm, {network}": docker_run(engine, network, options.rounds)
                for network in ("none", "bridge")
            }
            results |= many(engine, options.many)
            for name, value in results.items():
                rows.setdefault(name, []).append(value)
        print("| what | " + " | ".join(engine.name for engine in running) + " |")
        print("| --- |" + " --- |" * len(running))
        for name, values in rows.items():
            print(f"| {name} | " + " | ".join(values) + " |")


if __name__ == "__main__":
    main()
