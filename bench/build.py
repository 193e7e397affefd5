"""How fast are builds? The same Dockerfiles by Husk, dockerd and podman, by the classic door and by BuildKit's.

    sudo .venv/bin/python -m bench.build [--engines husk,dockerd-new] [--rounds 3] [--scale 10] [--only steps,cached]
    sudo HUSK_BENCH_PEERS=/tmp/peers/bin BUILDX=/tmp/buildx/docker-buildx .venv/bin/python -m bench.build

Builds go by BuildKit's protocol as well, where the engine has it; BUILDX is the plugin's path, where it is not the one
that scripts/setup --test has taken. Times are medians of the rounds.

Each round deletes tens of thousands of files. ext4 without a journal makes new ones slowly for some minutes after that,
whoever wants them: give such a machine a `--directory` on a file system of another kind.
"""

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.engines import Engine
from bench.sheet import Sheet

# What scripts/setup --test has taken out of Debian unstable, unless said.
_PLUGIN = Path(__file__).parents[1] / ".venv/docker/cli-plugins/docker-buildx"
BUILDX = os.environ.get("BUILDX") or (str(_PLUGIN) if _PLUGIN.is_file() else "")
STEPS = "FROM busybox\n" + "".join(f"RUN echo {number} > /{number}\n" for number in range(5))
COPY = "FROM busybox\nCOPY . /context/\n"


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
        done = subprocess.run(
            ["docker", "build", "-q", "-t", "bench", *options, str(context)],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if done.returncode != 0:
            raise SystemExit(f"{self.engine.name}, {self.kind}: {done.stderr.decode(errors='replace')}")

    def forget(self) -> None:
        self.engine.docker("builder", "prune", "-af")


# Seconds of each round by door, of what was built and how much it was.
Taken = dict[tuple[str, str], dict[Door, list[float]]]


def run(door: Door, work: Work, wanted: set[str], taken: Taken) -> None:
    def timed(kind: str, what: str, of: str, context: Path, *options: str) -> None:
        if kind not in wanted:
            return
        os.sync()
        begin = time.perf_counter()
        door.build(context, *options)
        taken.setdefault((what, of), {}).setdefault(door, []).append(time.perf_counter() - begin)

    small = f"{work.count:,} small files"
    door.forget()
    door.build(work.steps)
    timed("cached", "build of five steps, all cached", "", work.steps)
    timed("steps", "build of five steps without the cache", "", work.steps, "--no-cache")
    timed("stages", "build of ten stages", f"{work.seconds:g} s each", work.stages, "--no-cache")
    door.forget()
    timed("files", "build with COPY of a context", small, work.files)
    work.touch()
    timed("touched", "the same with one file changed", small, work.files)
    door.forget()
    timed("large", "build with COPY of one file", f"{work.megabytes} MB", work.large)


def main() -> None:
    sheet = Sheet("build", __doc__, engines="husk,dockerd-new")
    sheet.option("rounds", 3, quick=1)
    sheet.option("scale", 1, quick=20, about="so many times less of everything")
    sheet.option("only", "cached,steps,stages,files,touched,large", quick="cached,steps")
    sheet.parser.add_argument("--classic-only", default="podman", help="engines without BuildKit's door, as a,b")
    sheet.parser.add_argument("--doors", default="classic,buildkit")
    sheet.parser.add_argument("--directory", default="/tmp", help="where the engines have their files")
    options = sheet.read()
    taken: Taken = {}
    with ExitStack() as stack:
        top = stack.enter_context(tempfile.TemporaryDirectory(prefix="hkb-work-"))
        running = stack.enter_context(sheet.running(directory=options.directory))
        work = Work(Path(top), options.scale)
        doors = [Door(engine, "") for engine in running if "classic" in options.doors]
        if BUILDX and "buildkit" in options.doors:
            without = options.classic_only.split(",")
            doors += [Door(engine, BUILDX) for engine in running if engine.name not in without]
        for door in doors:
            stack.callback(door.close)
        for number in range(options.rounds):
            for door in doors:
                sheet.say(f"round {number + 1} of {options.rounds}, {door.engine.name}, {door.kind}")
                run(door, work, set(options.only.split(",")), taken)
    for (what, of), times in taken.items():
        for door, seconds in times.items():
            sheet.add(door.engine, f"{what}, {door.kind}", "s", seconds, of=of)
    sheet.finish()


if __name__ == "__main__":
    main()
