"""Time of a container, and the cost of the engine: Husk beside dockerd and podman, in one run.

    .venv/bin/python -m bench.containers [--rounds 20] [--engines husk,dockerd-new,podman] [--many 50]

Medians in milliseconds; compare ratios within one run, machines differ. Needs root.
"""

import itertools
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bench.engines import IMAGE, Engine, UnixConnection
from bench.sheet import Sheet

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


def api_cycles(sheet: Sheet, engine: Engine, network: str) -> None:
    connection = engine.connection()
    cycle(connection, network)
    columns = zip(*(cycle(connection, network) for _ in range(sheet.options.rounds)), strict=True)
    create, start, wait, delete, total = columns
    sheet.add(engine, f"API create + start + wait + delete, {network}", "ms", total)
    for verb, taken in (("create", create), ("start", start), ("wait", wait), ("delete", delete)):
        sheet.add(engine, f"of it {verb}, {network}", "ms", taken)


def docker_run(sheet: Sheet, engine: Engine, network: str) -> None:
    command = ["docker", "run", "--rm", "--net", network, IMAGE, "true"]
    environment = {**os.environ, "DOCKER_HOST": f"unix://{engine.socket}"}
    times = []
    for _ in range(sheet.options.rounds + 1):
        begin = time.perf_counter()
        subprocess.run(command, env=environment, check=True)
        times.append((time.perf_counter() - begin) * 1e3)
    sheet.add(engine, f"`docker run --rm`, {network}", "ms", times[1:])


def many(sheet: Sheet, engine: Engine, count: int) -> None:
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
    of = f"{count} containers"
    sheet.add(engine, "memory of all processes, idle after that", "MiB", idle)
    sheet.add(engine, "memory of all processes with containers running", "MiB", loaded, of=of)
    sheet.add(engine, "start by 8 clients", "s", started, of=of)
    sheet.add(engine, "list", "ms", listing, of=of)
    sheet.add(engine, "stop -t0 by 8 clients", "s", stopped, of=of)
    sheet.add(engine, "remove by 8 clients", "s", removed, of=of)


def main() -> None:
    sheet = Sheet("containers", __doc__, engines="husk,dockerd-new,podman")
    sheet.option("rounds", 20, quick=1)
    sheet.option("many", 50, quick=4)
    sheet.option("networks", "none,bridge,host", quick="bridge")
    options = sheet.read()
    with sheet.running() as running:
        for engine in running:
            sheet.add(engine, "memory of all processes after the start", "MiB", engine.pss())
        for engine in running:
            sheet.say(f"{engine.name}: {options.rounds} rounds of the API and of docker run")
            for network in options.networks.split(","):
                api_cycles(sheet, engine, network)
                if network != "host":
                    docker_run(sheet, engine, network)
            sheet.say(f"{engine.name}: {options.many} at a time")
            many(sheet, engine, options.many)
    sheet.finish()


if __name__ == "__main__":
    main()
