"""Time until a daemon answers: from its start to the first answers, with and without stopped containers.

    .venv/bin/python -m bench.startup [--rounds 10] [--engines husk,dockerd-new] [--containers 0,50] [--beside SRC]

Each engine gets the containers, which run and end, and is then stopped and started again, `--rounds` times. Medians of:
the time until `GET /_ping` is answered, the time until the list of all containers is answered after it, and the
processor time (user and system, all processes of the engine) that was used by then. Needs root.

`--beside` is the `src` of another version of Husk: both are started in turns on the same containers, which is the one
way to compare them on a machine that has other work too.
"""

import contextlib
import http.client
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from bench.engines import IMAGE, Engine
from bench.sheet import Sheet

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


def in_turns(engine: Engine, rounds: int, beside: str) -> dict[str, list[tuple[float, float, float]]]:
    """Return what `start` tells of each round, by engine; with `beside` another Husk is among them."""
    sources = {engine.name: engine.environment.get("PYTHONPATH", "")}
    if beside and engine.name == "husk":
        sources[f"husk of {beside}"] = beside
    taken: dict[str, list[tuple[float, float, float]]] = {version: [] for version in sources}
    for _ in range(rounds):
        for version, source in sources.items():
            stop(engine)
            if source:
                engine.environment["PYTHONPATH"] = source
            taken[version].append(start(engine))
    return taken


def empty_program() -> float:
    """Milliseconds of a Python that does nothing."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", ""], check=True)
    return (time.perf_counter() - begin) * 1e3


def main() -> None:
    sheet = Sheet("startup", __doc__, engines="husk,dockerd-new")
    sheet.option("rounds", 10, quick=1)
    sheet.option("containers", "0,50", quick="5", about="numbers of stopped containers, rising")
    sheet.parser.add_argument(
        "--beside", default="", help="the sources of another Husk, started in turns with this one"
    )
    options = sheet.read()
    for name in sheet.wanted:
        with sheet.running(name) as [engine]:
            for count in map(int, options.containers.split(",")):
                of = f"{count} stopped containers"
                sheet.say(f"{name}, {of}")
                make_stopped(engine, count)
                for version, rounds in in_turns(engine, options.rounds, options.beside).items():
                    first, listed, cpu = zip(*rounds, strict=True)
                    sheet.add(version, "until the first answer", "ms", first, of=of)
                    sheet.add(version, "list after it", "ms", listed, of=of)
                    sheet.add(version, "processor until then", "ms", cpu, of=of)
    sheet.add("python", "an empty program", "ms", [empty_program() for _ in range(options.rounds)])
    sheet.finish()


if __name__ == "__main__":
    main()
