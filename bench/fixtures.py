"""How long is a fixture with one container that is ready? husk's plugin beside testcontainers on dockerd.

    HUSK_BENCH_PEERS=/opt/peers/bin python bench/fixtures.py [--rounds 10]

Each fixture starts a web server of busybox, waits until its port takes connections, asks it once, and removes it. Both
engines have the image already. `first` counts what a run of tests pays once: opening the engine, or finding the daemon,
which runs already, and testcontainers' own helper is switched off, as it would have to be pulled.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from engines import IMAGE, Engine, engines  # noqa: E402

PAGE = "mkdir /www && echo hello > /www/index.html && exec httpd -f -p 80 -h /www"
Address = AbstractContextManager[tuple[str, int]]


@contextlib.contextmanager
def husk_plugin(directory: str) -> Iterator[Callable[[], Address]]:
    from husk.embedded import Engine as Embedded
    from husk.loop_thread import Kept
    from husk.pytest_plugin import TestEngine

    kept = Kept(Embedded.open(data_root=f"{directory}/data", exec_root=f"{directory}/run"), "bench")
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


def measure(name: str, open_it: AbstractContextManager[Callable[[], Address]], rounds: int) -> float:
    """The median of `rounds` fixtures in seconds."""
    begun = time.perf_counter()
    took: list[tuple[float, float]] = []
    with open_it as ready:
        for number in range(rounds + 1):
            start = time.perf_counter()
            with ready() as (host, port):
                with urlopen(f"http://{host}:{port}/") as answer:
                    assert answer.read() == b"hello\n"
                usable = time.perf_counter()
            if number:
                took.append((usable - start, time.perf_counter() - start))
            else:
                first = time.perf_counter() - begun
    until_ready, whole = (statistics.median(times) for times in zip(*took, strict=True))
    print(f"{name}: ready {until_ready * 1000:.0f} ms, with removal {whole * 1000:.0f} ms; first {first * 1000:.0f} ms")
    return whole


def beside(engine: Engine, rounds: int) -> float:
    """The same with testcontainers, in the network namespace that its engine has for itself."""
    inside = ["nsenter", f"--net=/proc/{engine.process.pid}/ns/net", sys.executable, __file__]
    asked = ["--socket", str(engine.socket), "--title", engine.title(), "--rounds", str(rounds)]
    said = subprocess.run([*inside, *asked], stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout
    line, _, took = said.strip().rpartition("\n")
    print(line)
    return float(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--socket", help=argparse.SUPPRESS)
    parser.add_argument("--title", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rounds: int = arguments.rounds
    if arguments.socket:
        print(measure(f"testcontainers, {arguments.title}", testcontainers(arguments.socket), rounds))
        return
    with tempfile.TemporaryDirectory(prefix="hk-", dir="/tmp") as directory:
        ours = measure("husk[pytest], no daemon", husk_plugin(directory), rounds)
    with engines(["dockerd-new"]) as (engine,):
        theirs = beside(engine, rounds)
        print(f"ratio {theirs / ours:.1f}; load average: {' '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    main()
