"""Answers of a daemon while it builds what is hostile: how long a `_ping` takes, and what of memory stays.

    sudo .venv/bin/python -m bench.hostile_builds [--engines husk,dockerd-new] [--doors classic,BuildKit]

Each input is built once by each door: Dockerfiles of a few bytes that ask for much, long ones, a context of many files,
and a plain build beside them. Meanwhile another process asks `_ping` every five milliseconds on one connection. A
build may fail, and most are to. "Nothing at all" are pings without a build: what they tell is what the machine does.
Memory (PSS) is that of all processes of the engine before the first build, and half a minute after the last; beside
it that of the daemon's own process, also after the first build of each door. That is a plain one: what it has more
then is the code that builds. Then the images that were built are removed, and memory is told once more.
"""

import contextlib
import io
import multiprocessing
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from bench.build import BUILDX, STEPS, Door
from bench.engines import Engine, UnixConnection
from bench.sheet import Sheet

_PAUSE = 0.005
# Husk gives memory of builds back when none has come for that long.
_REST = 35
_LONGEST_BUILD = 120
# As many instructions as a Dockerfile may have, about.
MANY = 9_900
# The first one, a build as any other.
PLAIN = "five steps"


def inputs(scale: int) -> dict[str, tuple[str, int]]:
    """Return Dockerfiles by what they are, each with the number of files beside it."""
    many = MANY // scale
    doubling = "".join(f"ENV B={'$B' * 10}\n" for _ in range(9))
    long = "a" * 2500
    names = " ".join(f"a{number}" for number in range(20 * many))
    return {
        PLAIN: (STEPS, 0),
        "ranges of ports": ("FROM busybox\n" + "EXPOSE 1-65535\n" * 100, 0),
        "a variable that doubles": (f"FROM busybox\nENV B=xxxxxxxxxx\n{doubling}", 0),
        "two long names": (f"FROM busybox AS {long}\nFROM busybox AS {long}b\nCOPY --from={long}c / /\n", 0),
        "blanks in a syntax line": (f"# syntax=a{' ' * 25_000}b\nFROM busybox\n", 0),
        "many maintainers": ("FROM busybox\n" + "MAINTAINER a\n" * many, 0),
        "many labels": ("FROM busybox\n" + "".join(f"LABEL l{number}=v\n" for number in range(many)), 0),
        "many ports": ("FROM busybox\n" + "".join(f"EXPOSE {number}\n" for number in range(1, many)), 0),
        "many steps": ("FROM busybox\n" + "RUN true\n" * many, 0),
        "many stages": ("".join(f"FROM scratch AS s{number}\n" for number in range(many)), 0),
        "many names to copy": (f"FROM busybox\nCOPY {names} /\n", 0),
        "many triggers": ("FROM busybox\n" + "ONBUILD RUN true\n" * many, 0),
        "many files": ("FROM busybox\nCOPY . /context/\n", 2 * many),
    }


def ask(socket: Path, told: Connection) -> None:
    """Say that it begins, ask until something is said at the other end, and then tell all times in milliseconds."""
    connection = UnixConnection(socket)
    taken: list[float] = []
    connection.call("GET", "/_ping")
    told.send(None)
    while not taken or not told.poll(_PAUSE):
        begin = time.perf_counter()
        connection.call("GET", "/_ping")
        taken.append((time.perf_counter() - begin) * 1e3)
    told.send(taken)


class Pings:
    """The times of `_ping` while the block is open."""

    def __init__(self, engine: Engine) -> None:
        self._socket = engine.socket
        self.taken: list[float] = []

    def __enter__(self) -> "Pings":
        self._ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=ask, args=(self._socket, theirs))
        self._process.start()
        self._ours.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.send(None)
        self.taken = self._ours.recv()
        self._process.join()


@contextlib.contextmanager
def context(dockerfile: str, files: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hkb-hostile-") as name:
        top = Path(name)
        (top / "Dockerfile").write_text(dockerfile)
        for number in range(files):
            (top / f"{number // 100}").mkdir(exist_ok=True)
            (top / f"{number // 100}" / f"{number}").write_text(f"{number}")
        yield top


def build(engine: Engine, door: Door, top: Path) -> None:
    """Build, by the classic door without a client in between: that would refuse some before the daemon hears of it."""
    if door.kind == "classic":
        body = io.BytesIO()
        with tarfile.open(fileobj=body, mode="w") as archive:
            archive.add(top, ".")
        with contextlib.suppress(OSError, Exception):
            engine.connection().call("POST", "/v1.40/build?nocache=1", body.getvalue(), "application/x-tar")
    else:
        command = ["docker", "build", "-q", "--no-cache", str(top)]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, env=door.environment, capture_output=True, timeout=_LONGEST_BUILD, check=False)


def own_memory(engine: Engine) -> float:
    """MiB (PSS) of the daemon's own process."""
    rollup = Path(f"/proc/{engine.process.pid}/smaps_rollup").read_text()
    return int(rollup.partition("\nPss:")[2].split()[0]) / 1024


def remove_images(engine: Engine) -> None:
    """Remove what the builds have left: images without a name, and the cache."""
    for path in ("/v1.40/images/prune", "/v1.40/build/prune?all=1"):
        engine.connection().call("POST", path)


def main() -> None:
    sheet = Sheet("hostile_builds", __doc__, engines="husk,dockerd-new")
    sheet.option("scale", 1, quick=20, about="so many times fewer lines and files")
    sheet.parser.add_argument("--doors", default="classic,BuildKit", help="classic,BuildKit unless said")
    options = sheet.read()
    for name in sheet.wanted:
        with sheet.running(name) as [engine]:
            sheet.add(name, "memory", "MiB", [engine.pss()], of="before")
            sheet.add(name, "memory of the daemon's process", "MiB", [own_memory(engine)], of="before")
            with Pings(engine) as pings:
                time.sleep(5)
            sheet.add(name, "median _ping", "ms", [statistics.median(pings.taken)], of="nothing at all")
            sheet.add(name, "longest _ping", "ms", [max(pings.taken)], of="nothing at all")
            for kind in options.doors.split(","):
                door = Door(engine, "" if kind == "classic" else BUILDX)
                for what, (dockerfile, files) in inputs(options.scale).items():
                    with context(dockerfile, files) as top, Pings(engine) as pings:
                        begin = time.perf_counter()
                        build(engine, door, top)
                        taken = time.perf_counter() - begin
                    longest, median = max(pings.taken), statistics.median(pings.taken)
                    late = sum(one > 20 for one in pings.taken)
                    told = f"median {median:.2f} ms, longest {longest:.1f} ms, {late} of {len(pings.taken)} over 20 ms"
                    sheet.say(f"{name}, {kind}, {what}: {taken:.1f} s, {told}")
                    sheet.add(name, f"median _ping, {kind}", "ms", [median], of=what)
                    sheet.add(name, f"longest _ping, {kind}", "ms", [longest], of=what)
                    if what == PLAIN:
                        of = f"after {PLAIN}, {kind}"
                        sheet.add(name, "memory of the daemon's process", "MiB", [own_memory(engine)], of=of)
                door.close()
            time.sleep(_REST)
            for of in ("half a minute after", "when the images are gone"):
                sheet.add(name, "memory", "MiB", [engine.pss()], of=of)
                sheet.add(name, "memory of the daemon's process", "MiB", [own_memory(engine)], of=of)
                remove_images(engine)
    sheet.finish()


if __name__ == "__main__":
    if os.geteuid():
        sys.exit("run it as root")
    main()
