"""Speed of builds: the same Dockerfiles by Husk, dockerd and podman, by the classic door and by BuildKit's.

    sudo .venv/bin/python -m bench.build [--engines husk,dockerd-new] [--rounds 3] [--scale 10] [--only steps,cached]
    sudo HUSK_BENCH_PEERS=/tmp/peers/bin BUILDX=/tmp/buildx/docker-buildx .venv/bin/python -m bench.build

Builds go by BuildKit's protocol as well, where the engine has it; BUILDX is the plugin's path, where it is not the one
that scripts/setup --test has taken. `interrupted` is the time from ctrl-c at the client to the end of the step's last
process. With `apart` five steps are told a second time without what the client does before it says the first word of a
build (`bench.first_word`). Each build is told with the processor time of its client, which no engine can take away,
and of the engine: those count where the machine has other work. Memory is that of all processes of an engine before
the first build and a while after the last, and that of its daemon at most.

Each round builds with tens of thousands of files and deletes them. So for every turn, which is all builds by one door
of one engine, the engine is started anew on a file system that was made for it (`disk`), and is gone afterwards. The
classic door has fewer rounds: there dockerd takes more than a minute for the files.
"""

import contextlib
import os
import resource
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.disk import fresh_disk
from bench.engines import Engine
from bench.first_word import FirstWord
from bench.sheet import Sheet

# What scripts/setup --test has taken out of Debian unstable, unless said.
_PLUGIN = Path(__file__).parents[1] / ".venv/docker/cli-plugins/docker-buildx"
BUILDX = os.environ.get("BUILDX") or (str(_PLUGIN) if _PLUGIN.is_file() else "")
STEPS = "FROM busybox\n" + "".join(f"RUN echo {number} > /{number}\n" for number in range(5))
COPY = "FROM busybox\nCOPY . /context/\n"
# No other process of the machine sleeps that long.
LONG_SLEEP = f"8{os.getpid():08}"
# Seconds after an answer until processes of the engine have been waited for, and are counted as its own.
_SETTLE = 0.3


def stages(seconds: float) -> str:
    """Ten that do not need each other, and one that needs all of them."""
    each = (f"FROM busybox AS s{number}\nRUN sleep {seconds:g}; touch /{number}\n" for number in range(10))
    last = (f"COPY --from=s{number} /{number} /\n" for number in range(10))
    return "".join((*each, "FROM busybox\n", *last))


class Work:
    """The contexts that are built."""

    def __init__(self, top: Path, scale: int) -> None:
        self.steps = self._context(top / "steps", STEPS)
        self.seconds = 1 if scale == 1 else 0.1
        self.stages = self._context(top / "stages", stages(self.seconds))
        self.endless = self._context(top / "endless", f"FROM busybox\nRUN sleep {LONG_SLEEP}\n")
        self.files = self._context(top / "files", COPY)
        self.count = 20_000 // scale
        for number in range(self.count):
            directory = self.files / f"{number // 100}"
            directory.mkdir(exist_ok=True)
            (directory / f"{number}").write_bytes(secrets.token_bytes(500))
        self.large = self._context(top / "large", COPY)
        with (self.large / "large").open("wb") as out:
            self.megabytes = 300 // scale
            for _ in range(self.megabytes):
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
        self.kind = "BuildKit" if buildx else "classic"
        self._config = Path(tempfile.mkdtemp(prefix="hkb-cli-"))
        self.environment = {
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

    def build(self, context: Path, *options: str, host: Path | None = None) -> None:
        client = self._client(context, *options, host=host)
        _, told = client.communicate()
        if client.returncode != 0:
            raise SystemExit(f"{self.engine.name}, {self.kind}: {told.decode(errors='replace')}")

    def build_apart(self, context: Path, *options: str) -> tuple[float, float]:
        """Seconds that the client takes before it says the first word of a build, and from there to its end."""
        with FirstWord(self.engine.socket, self._config) as door:
            begin = time.perf_counter()
            self.build(context, *options, host=door.path)
            end = time.perf_counter()
        said = door.said or begin
        return said - begin, end - said

    def interrupt(self, context: Path) -> float:
        """Begin a build that sleeps, and end it as ctrl-c does: seconds until its processes are gone."""
        client = self._client(context, "--no-cache")
        _wait_until(sleeping, f"{self.engine.name}, {self.kind}, does not begin to sleep")
        begin = time.perf_counter()
        # A terminal sends it to all that run there: the docker command, and the plugin that it started.
        os.killpg(client.pid, signal.SIGINT)
        _wait_until(lambda: not sleeping(), f"{self.engine.name}, {self.kind}, sleeps on without its client")
        taken = time.perf_counter() - begin
        client.communicate()
        return taken

    def _client(self, context: Path, *options: str, host: Path | None = None) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            ["docker", "build", "-q", "-t", "bench", *options, str(context)],
            env=self.environment | ({"DOCKER_HOST": f"unix://{host}"} if host else {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def forget(self) -> None:
        self.engine.docker("builder", "prune", "-af")


def sleeping() -> bool:
    """Tell if a process of the endless step is there."""
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


def _used_by_clients() -> float:
    """Seconds of processor time of all clients that have ended, with the plugins that they started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Seconds of each round by engine and kind of door, of what was built and how much it was.
Taken = dict[tuple[str, str], dict[tuple[str, str], list[float]]]


def run(door: Door, work: Work, wanted: set[str], taken: Taken) -> None:
    def timed(kind: str, what: str, of: str, context: Path, *options: str, apart: bool = False) -> None:
        if kind not in wanted:
            return
        os.sync()
        time.sleep(_SETTLE)  # what an engine still does for the build before is no part of this one
        engine, client, begin = door.engine.cpu(), _used_by_clients(), time.perf_counter()
        door.build(context, *options)
        keep(what, of, time.perf_counter() - begin)
        keep(f"{what}: processor time of the client", of, _used_by_clients() - client)
        time.sleep(_SETTLE)
        keep(f"{what}: processor time of the engine", of, door.engine.cpu() - engine)
        if apart and "apart" in wanted:
            own, rest = door.build_apart(context, *options)
            keep(f"{what}: from the client's first word on", of, rest)
            keep(f"{what}: the client before it", of, own)

    def keep(what: str, of: str, seconds: float) -> None:
        by_door = taken.setdefault((what, of), {})
        by_door.setdefault((door.engine.name, door.kind), []).append(seconds)

    small = f"{work.count:,} small files"
    door.forget()
    door.build(work.steps)
    timed("cached", "build of five steps, all cached", "", work.steps, apart=True)
    timed("steps", "build of five steps without the cache", "", work.steps, "--no-cache", apart=True)
    timed("stages", "build of ten stages", f"{work.seconds:g} s each", work.stages, "--no-cache")
    if "interrupted" in wanted:
        keep("ctrl-c until a build's processes are gone", "", door.interrupt(work.endless))
    door.forget()
    timed("files", "build with COPY of a context", small, work.files)
    work.touch()
    timed("touched", "the same with one file changed", small, work.files)
    door.forget()
    timed("large", "build with COPY of one file", f"{work.megabytes} MB", work.large)


@contextlib.contextmanager
def turn(sheet: Sheet, name: str, buildx: str) -> Iterator[Door]:
    """A door of an engine that has just been started, on a new file system."""
    options = sheet.options
    gigabytes = 8 if options.scale < 10 else 2
    with (
        fresh_disk(gigabytes, options.directory) as disk,
        sheet.running(name, directory=str(disk)) as (engine,),
        contextlib.closing(Door(engine, buildx)) as door,
    ):
        yield door


def main() -> None:
    sheet = Sheet("build", __doc__, engines="husk,dockerd-new")
    sheet.option("rounds", 3, quick=1)
    sheet.option("classic-rounds", 2, quick=1)
    sheet.option("scale", 1, quick=20, about="so many times less of everything")
    sheet.option("doors", "classic,buildkit", quick="buildkit")
    sheet.option("rest", 40, quick=1, about="seconds that an engine has to give memory back")
    sheet.option("only", "cached,steps,apart,stages,interrupted,files,touched,large", quick="cached,steps")
    sheet.parser.add_argument("--classic-only", default="podman", help="engines without BuildKit's door, as a,b")
    sheet.parser.add_argument("--directory", default="/var/tmp", help="where the file systems of the engines are")
    options = sheet.read()
    taken: Taken = {}
    with tempfile.TemporaryDirectory(prefix="hkb-work-") as top:
        work = Work(Path(top), options.scale)
        names, without = sheet.wanted, options.classic_only.split(",")
        classic = [(name, "") for name in names if "classic" in options.doors]
        buildkit = [(name, BUILDX) for name in names if BUILDX and "buildkit" in options.doors and name not in without]
        for number in range(options.rounds):
            turns = (classic if number < options.classic_rounds else []) + buildkit
            for name, buildx in turns if number % 2 == 0 else reversed(turns):
                with turn(sheet, name, buildx) as door:
                    sheet.say(f"round {number + 1} of {options.rounds}, {name}, {door.kind}")
                    before = door.engine.pss()
                    door.engine.forget_peak()
                    run(door, work, set(options.only.split(",")), taken)
                    if number == 0 and (name, buildx) == [one for one in turns if one[0] == name][-1]:
                        time.sleep(options.rest)
                        sheet.add(name, "memory of all processes before the first build", "MiB", before)
                        sheet.add(name, "memory of all processes after the last build", "MiB", door.engine.pss())
                        sheet.add(name, "memory of the daemon at most", "MiB", door.engine.peak())
    for (what, of), times in taken.items():
        for (name, kind), seconds in times.items():
            sheet.add(name, f"{what}, {kind}", "s", seconds, of=of)
    sheet.finish()


if __name__ == "__main__":
    main()
