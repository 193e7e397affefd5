"""How long until a daemon answers? From its start to the first answers, with and without stopped containers.

    .venv/bin/python bench/startup.py [--rounds 10] [--engines husk,dockerd-new] [--containers 0,50] [--beside SRC]

Each engine gets the containers, which run and end, and is then stopped and started again, `--rounds` times. Medians of:
the time until `GET /_ping` is answered, the time until the list of all containers is answered after it, and the
processor time (user and system, all processes of the engine) that was used by then. Needs root.

`--beside` is the `src` of another version of Husk: both are started in turns on the same containers, which is the one
way to compare them on a machine that has other work too.
"""

import argparse
import contextlib
import http.client
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from engines import IMAGE, Engine, engines

API = "/v1.40"


def make_stopped(engine: Engine, count: int) -> None:
    """Make as many containers as are missing until there are `count`; each has run once."""

    def one(_: int) -> None:
        connection = engine.connection()
        body = {"Image": IMAGE, "Cmd": ["true"], "HostConfig": {"NetworkMode": "bridge"}}
        container = connection.call("POST", f"{API}/containers/create", body)[1]["Id"]
        for verb in ("start", "wait"):
            connection.call("POST", f"{API}/containers/{container}/{verb}")

    there = len(engine.connection().call("GET", f"{API}/containers/json?all=1")[1])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(there, count)))


def stop(engine: Engine) -> None:
    engine.process.send_signal(signal.SIGTERM)
    engine.process.wait(60)


def start(engine: Engine) -> tuple[float, float, float]:
    """Milliseconds until the first answer, from there to the list of containers, and of processor time until then."""
    begin = time.perf_counter()
    engine.start()
    connection = engine.connection()
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if connection.call("GET", "/_ping")[0] == 200:
                break
        connection.close()
        if engine.process.poll() is not None or time.perf_counter() > begin + 60:
            raise SystemExit(f"{engine.name} did not start: see {engine.directory}/log")
        time.sleep(0.001)
    first = time.perf_counter()
    connection.call("GET", f"{API}/containers/json?all=1")
    second = time.perf_counter()
    return (first - begin) * 1e3, (second - first) * 1e3, engine.cpu() * 1e3


def in_turns(engine: Engine, options: argparse.Namespace) -> dict[str, list[tuple[float, float, float]]]:
    """What `start` tells of each round, and beside it the same of the other Husk."""
    sources = {"": engine.environment.get("PYTHONPATH", "")}
    if options.beside and engine.name == "husk":
        sources[f" of {options.beside}"] = options.beside
    rounds: dict[str, list[tuple[float, float, float]]] = {version: [] for version in sources}
    for _ in range(options.rounds):
        for version, source in sources.items():
            stop(engine)
            if source:
                engine.environment["PYTHONPATH"] = source
            rounds[version].append(start(engine))
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--engines", default="husk,dockerd-new")
    parser.add_argument("--containers", default="0,50", help="numbers of stopped containers, rising")
    parser.add_argument("--beside", help="the sources of another Husk, to be started in turns with this one")
    options = parser.parse_args()
    bare = []
    for _ in range(options.rounds):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], check=True)
        bare.append((time.perf_counter() - begin) * 1e3)
    print(f"An empty Python program takes {statistics.median(bare):.0f} ms here.\n")
    print("| engine | stopped containers | first answer, median (best) | list after it | processor time |")
    print("| --- | --- | --- | --- | --- |")
    for name in options.engines.split(","):
        with engines([name]) as running:
            for engine in running:
                title = engine.title()
                for count in map(int, options.containers.split(",")):
                    make_stopped(engine, count)
                    for version, rounds in in_turns(engine, options).items():
                        first, listed, cpu = (statistics.median(column) for column in zip(*rounds, strict=True))
                        best = min(row[0] for row in rounds)
                        name = f"{title}{version}"
                        print(f"| {name} | {count} | {first:.0f} ms ({best:.0f}) | {listed:.1f} ms | {cpu:.0f} ms |")


if __name__ == "__main__":
    main()
