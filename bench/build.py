"""How fast are builds? The same Dockerfiles by Husk, dockerd and podman, by the classic door and by BuildKit's.

    sudo .venv/bin/python bench/build.py [--engines husk,dockerd-new] [--rounds 3] [--small] [--only steps,cached]
    sudo HUSK_BENCH_PEERS=/tmp/peers/bin BUILDX=/tmp/buildx/docker-buildx .venv/bin/python bench/build.py

With BUILDX (the plugin's path) builds go by BuildKit's protocol as well, where the engine has it. Times are medians of
the rounds; `x` is how many times as long as Husk's door of the same kind the others took, as the median of the rounds.
`interrupted` is the time from ctrl-c at the client to the end of the step's last process. Behind the table comes what
memory all processes of each engine had before the first build and a while after the last, and its daemon at most.

Each round deletes tens of thousands of files. ext4 without a journal makes new ones slowly for some minutes after that,
whoever wants them: give such a machine a `--directory` on a file system of another kind.
"""

import argparse
import contextlib
import os
import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engines import Engine, engines, installed

ALL = "husk,dockerd-new"
STEPS = "FROM busybox\n" + "".join(f"RUN echo {number} > /{number}\n" for number in range(5))
COPY = "FROM busybox\nCOPY . /context/\n"
STAGES = (
    "".join(f"FROM busybox AS s{number}\nRUN sleep 1; touch /{number}\n" for number in range(10))
    + "FROM busybox\n"
    + "".join(f"COPY --from=s{number} /{number} /\n" for number in range(10))
)
# No other process of the machine sleeps that long.
LONG_SLEEP = f"8{os.getpid():08}"
# How many seconds an engine has to give memory back.
REST = 15


class Work:
    """The contexts that are built."""

    def __init__(self, top: Path, scale: int) -> None:
        self.steps = self._context(top / "steps", STEPS)
        self.stages = self._context(top / "stages", STAGES)
        self.endless = self._context(top / "endless", f"FROM busybox\nRUN sleep {LONG_SLEEP}\n")
        self.files = self._context(top / "files", COPY)
        for number in range(20_000 // scale):
            directory = self.files / f"{number // 100}"
            directory.mkdir(exist_ok=True)
            (directory / f"{number}").write_bytes(secrets.token_bytes(500))
        self.large = self._context(top / "large", COPY)
        with (self.large / "large").open("wb") as out:
            for _ in range(300 // scale):
                out.write(secrets.token_bytes(1 << 20))

    @staticmethod
    def _context(path: Path, dockerfile: str) -> Path:
        path.mkdir(parents=True)
        (path / "Dockerfile").write_text(dockerfile)
        return path

    def touch(self) -> None:
        """One file of many is another one."""
        (self.files / "0" / "0").write_bytes(secrets.token_bytes(500))


class Door:
    """One way into one engine."""

    def __init__(self, engine: Engine, buildx: str) -> None:
        self.engine = engine
        self.name = f"{engine.name} {'buildkit' if buildx else 'classic'}"
        self._config = Path(tempfile.mkdtemp(prefix="hkb-cli-"))
        self._environment = {
            **os.environ,
            "DOCKER_HOST": f"unix://{engine.socket}",
            "DOCKER_CONFIG": str(self._config),
            "DOCKER_BUILDKIT": "1" if buildx else "0",
        }
        if buildx:
            (self._config / "cli-plugins").mkdir()
            (self._config / "cli-plugins" / "docker-buildx").symlink_to(buildx)

    def close(self) -> None:
        shutil.rmtree(self._config)

    def build(self, context: Path, *options: str) -> None:
        client = self._client(context, *options)
        _, told = client.communicate()
        if client.returncode != 0:
            raise SystemExit(f"{self.name}: {told.decode(errors='replace')}")

    def interrupt(self, context: Path) -> float:
        """Begin a build that sleeps, and end it as ctrl-c does: seconds until its processes are gone."""
        client = self._client(context, "--no-cache")
        _wait_until(sleeping, f"{self.name} does not begin to sleep")
        begin = time.perf_counter()
        # A terminal sends it to all that run there: the docker command, and the plugin that it started.
        os.killpg(client.pid, signal.SIGINT)
        _wait_until(lambda: not sleeping(), f"{self.name} sleeps on without its client")
        taken = time.perf_counter() - begin
        client.communicate()
        return taken

    def _client(self, context: Path, *options: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            ["docker", "build", "-q", "-t", "bench", *options, str(context)],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def forget(self) -> None:
        self.engine.docker("builder", "prune", "-af")


def sleeping() -> bool:
    """Is a process of the endless step there?"""
    for entry in Path("/proc").glob("[0-9]*"):
        # The runtime and the client have these words in their command lines, too, but not alone.
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[-2:] == [LONG_SLEEP.encode(), b""] or words[1:3] == [b"-c", f"sleep {LONG_SLEEP}".encode()]:
                return True
    return False


def _wait_until(condition: Callable[[], bool], failure: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(failure)
        time.sleep(0.01)


def run(door: Door, work: Work, wanted: set[str], taken: dict[str, dict[str, list[float]]]) -> None:
    def timed(what: str, context: Path, *options: str) -> None:
        if what.partition(":")[0] not in wanted:
            return
        os.sync()
        begin = time.perf_counter()
        door.build(context, *options)
        taken.setdefault(what, {}).setdefault(door.name, []).append(time.perf_counter() - begin)

    door.forget()
    door.build(work.steps)
    timed("cached: five steps", work.steps)
    timed("steps: five, without the cache", work.steps, "--no-cache")
    timed("stages: ten of a second each", work.stages, "--no-cache")
    if "interrupted" in wanted:
        taken.setdefault("interrupted: a step that sleeps", {}).setdefault(door.name, []).append(
            door.interrupt(work.endless)
        )
    door.forget()
    timed("files: 20,000 small ones", work.files)
    work.touch()
    timed("touched: one of 20,000", work.files)
    door.forget()
    timed("large: one file of 300 MB", work.large)


def report(taken: dict[str, dict[str, list[float]]], doors: list[str]) -> None:
    print("| what | " + " | ".join(doors) + " |")
    print("| --- |" + " --- |" * len(doors))
    for what, times in taken.items():
        print(f"| {what} | " + " | ".join(cell(times, door, doors) for door in doors) + " |")


def cell(times: dict[str, list[float]], door: str, doors: list[str]) -> str:
    """The median, and how many times as long that is as what the first engine took by the same door."""
    if door not in times:
        return "-"
    kind = door.partition(" ")[2]
    first = next(name for name in doors if name.endswith(kind))
    median = statistics.median(times[door])
    if door == first:
        return f"{median:.2f} s"
    ratios = [one / other for one, other in zip(times[door], times[first], strict=True)]
    return f"{median:.2f} s ({statistics.median(ratios):.1f}x)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default=ALL)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a tenth of everything, to try the script")
    parser.add_argument("--only", default="cached,steps,stages,interrupted,files,touched,large")
    parser.add_argument("--classic-only", default="", help="engines without BuildKit's door, as a,b")
    parser.add_argument("--doors", default="classic,buildkit")
    parser.add_argument("--directory", default="/tmp", help="where the engines have their files")
    options = parser.parse_args()
    names = installed(options.engines.split(","))
    buildx = os.environ.get("BUILDX", "")
    taken: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="hkb-work-") as top, engines(names, directory=options.directory) as running:
        work = Work(Path(top), 10 if options.small else 1)
        doors = [Door(engine, "") for engine in running if "classic" in options.doors]
        if buildx and "buildkit" in options.doors:
            doors += [Door(engine, buildx) for engine in running if engine.name not in options.classic_only]
        before = {engine.name: engine.pss() for engine in running}
        for engine in running:
            engine.forget_peak()
        try:
            for number in range(options.rounds):
                print(f"# round {number + 1} of {options.rounds}", file=sys.stderr)
                for door in doors:
                    run(door, work, set(options.only.split(",")), taken)
        finally:
            for door in doors:
                door.close()
        report(taken, [door.name for door in doors])
        time.sleep(REST)
        for engine in running:
            first, last, most = before[engine.name], engine.pss(), engine.peak()
            told = f"{first:.1f} MiB before the first build, {last:.1f} MiB {REST} s after the last"
            print(f"memory of {engine.name}: {told}, the daemon alone {most:.1f} MiB at most")


if __name__ == "__main__":
    main()
