"""How fast are builds? The same Dockerfiles by Husk, dockerd and podman, by the classic door and by BuildKit's.

    sudo .venv/bin/python bench/build.py [--engines husk,dockerd-new] [--rounds 3] [--small] [--only steps,cached]
    sudo HUSK_BENCH_PEERS=/tmp/peers/bin BUILDX=/tmp/buildx/docker-buildx .venv/bin/python bench/build.py

With BUILDX (the plugin's path) builds go by BuildKit's protocol as well, where the engine has it. Times are medians of
the rounds; `x` is how many times as long as Husk's first door the others took.

Each round deletes tens of thousands of files. ext4 without a journal makes new ones slowly for some minutes after that,
whoever wants them: give such a machine a `--directory` on a file system of another kind.
"""

import argparse
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
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


class Work:
    """The contexts that are built."""

    def __init__(self, top: Path, scale: int) -> None:
        self.steps = self._context(top / "steps", STEPS)
        self.stages = self._context(top / "stages", STAGES)
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
        done = subprocess.run(
            ["docker", "build", "-q", "-t", "bench", *options, str(context)],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: {done.stderr.decode(errors='replace')}")

    def forget(self) -> None:
        self.engine.docker("builder", "prune", "-af")


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
        own = statistics.median(times[doors[0]])
        cells = []
        for door in doors:
            median = statistics.median(times[door]) if door in times else None
            ratio = "" if door == doors[0] or median is None else f" ({median / own:.1f}x)"
            cells.append("-" if median is None else f"{median:.2f} s{ratio}")
        print(f"| {what} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default=ALL)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a tenth of everything, to try the script")
    parser.add_argument("--only", default="cached,steps,stages,files,touched,large")
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
        try:
            for number in range(options.rounds):
                print(f"# round {number + 1} of {options.rounds}", file=sys.stderr)
                for door in doors:
                    run(door, work, set(options.only.split(",")), taken)
        finally:
            for door in doors:
                door.close()
        report(taken, [door.name for door in doors])


if __name__ == "__main__":
    main()
