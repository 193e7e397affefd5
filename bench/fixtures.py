"""Time of a fixture with one container that is ready: husk's plugin beside testcontainers on dockerd.

    sudo .venv/bin/python -m bench.fixtures [--rounds 10]

Each fixture starts a web server of busybox, waits until its port takes connections, asks it once, and removes it. Both
engines have the image already. `first` counts what a run of tests pays once: opening the engine, or finding the daemon,
which runs already, and testcontainers' own helper is switched off, as it would have to be pulled.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.client import HTTPException
from urllib.request import urlopen

import msgspec

from bench.engines import IMAGE, Engine
from bench.sheet import Sheet

PAGE = "mkdir /www && echo hello > /www/index.html && exec httpd -f -p 80 -h /www"
Address = AbstractContextManager[tuple[str, int]]


@contextlib.contextmanager
def husk_plugin(directory: str) -> Iterator[Callable[[], Address]]:
    from husk.aio.loop_thread import ThreadBound
    from husk.client.client import Client
    from husk.library.embedded import Engine as Embedded
    from husk.pytest_plugin import TestEngine

    kept: ThreadBound[Client] = ThreadBound(
        Embedded.open(data_root=f"{directory}/data", exec_root=f"{directory}/run"), "bench"
    )
    kept.start()
    engine = TestEngine(kept)

    @contextlib.contextmanager
    def ready() -> Iterator[tuple[str, int]]:
        with engine.container(IMAGE, ["sh", "-c", PAGE], ready={"port": 80}) as service:
            yield service.ip, 80

    try:
        yield ready
    finally:
        kept.close()


@contextlib.contextmanager
def testcontainers(socket: str) -> Iterator[Callable[[], Address]]:
    os.environ.update(
        DOCKER_HOST=f"unix://{socket}", TESTCONTAINERS_RYUK_DISABLED="true", TESTCONTAINERS_HOST_OVERRIDE="127.0.0.1"
    )
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import PortWaitStrategy

    @contextlib.contextmanager
    def ready() -> Iterator[tuple[str, int]]:
        box = DockerContainer(IMAGE).with_command(["sh", "-c", PAGE]).with_exposed_ports(80)
        with box.waiting_for(PortWaitStrategy(80).with_poll_interval(0.01)):
            yield box.get_container_host_ip(), int(box.get_exposed_port(80))

    yield ready


class Taken(msgspec.Struct):
    """Milliseconds of each fixture until it was usable and until it was gone again, and of the first of all."""

    ready: list[float]
    whole: list[float]
    first: float


def measure(open_it: AbstractContextManager[Callable[[], Address]], rounds: int) -> Taken:
    """So many fixtures, after a first one that is not among them."""
    begun = time.perf_counter()
    taken = Taken([], [], 0)
    with open_it as ready:
        for number in range(rounds + 1):
            start = time.perf_counter()
            with ready() as (host, port):
                with urlopen(f"http://{host}:{port}/") as answer:
                    assert answer.read() == b"hello\n"
                usable = time.perf_counter()
            if number:
                taken.ready.append((usable - start) * 1e3)
                taken.whole.append((time.perf_counter() - start) * 1e3)
            else:
                taken.first = (time.perf_counter() - begun) * 1e3
    return taken


def beside(engine: Engine, rounds: int) -> Taken:
    """The same with testcontainers, in the network namespace that its engine has for itself."""
    inside = ["nsenter", f"--net=/proc/{engine.process.pid}/ns/net", sys.executable, "-m", "bench.fixtures"]
    asked = ["--socket", str(engine.socket), "--rounds", str(rounds)]
    said = subprocess.run([*inside, *asked], stdout=subprocess.PIPE, check=True, timeout=300).stdout
    return msgspec.json.decode(said, type=Taken)


def main() -> None:
    sheet = Sheet("fixtures", __doc__, engines="dockerd-new")
    sheet.option("rounds", 10, quick=3)
    sheet.parser.add_argument("--socket", help=argparse.SUPPRESS)
    options = sheet.read()
    if options.socket:
        print(msgspec.json.encode(measure(testcontainers(options.socket), options.rounds)).decode())
        return
    found = {}
    sheet.title("husk", "husk[pytest], no daemon")
    sheet.say("husk's fixtures")
    with tempfile.TemporaryDirectory(prefix="hk-", dir="/tmp") as directory:
        found["husk"] = measure(husk_plugin(directory), options.rounds)
    for name in sheet.wanted:
        sheet.say(f"testcontainers on {name}")
        try:
            with sheet.running(name) as [engine]:
                sheet.title(name, f"testcontainers, {engine.title()}")
                found[name] = beside(engine, options.rounds)
        except (OSError, HTTPException, subprocess.SubprocessError, SystemExit) as error:
            sheet.lose(name, str(error))
    for name, taken in found.items():
        sheet.add(name, "a fixture until it is ready", "ms", taken.ready)
        sheet.add(name, "a fixture with its removal", "ms", taken.whole)
        sheet.add(name, "the first one", "ms", taken.first)
    sheet.finish()


if __name__ == "__main__":
    main()
