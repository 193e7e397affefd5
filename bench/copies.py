"""Time of `docker cp`: a small file, a directory with three, a large file, a tree of small ones; in and out.

    sudo .venv/bin/python -m bench.copies
    sudo .venv/bin/python -m bench.copies --rounds 15 --engines husk,dockerd,dockerd-new,podman
    sudo .venv/bin/python -m bench.copies --rounds 40 --only small --engines husk,dockerd-new
    sudo .venv/bin/python -m bench.copies --engines husk,husk-without-body,husk-without-outlet

The last one shows what each shortcut for copies is worth (`without.py`).

Each copy is made once by every engine before the next round begins, so that a busy machine slows all of them alike: the
factor is the median of what one round took beside the first engine in the same round.
Each round has another order: what one engine still does after its copy, and leaves in the caches, is the next one's.
"""

import os
import random
import tempfile
import time
from pathlib import Path

from bench.engines import Engine
from bench.sheet import Sheet

PAUSE = 0.1
WHAT = ("small", "few", "large", "tree")


class Target:
    """A running container of one engine, and what is copied into it and back.

    Small files that were copied stay until the end: right after files were removed, ext4 takes long to make new ones.
    """

    def __init__(self, engine: Engine, files: Path) -> None:
        self.name = engine.name
        self._docker = engine.docker
        self._files = files
        self._copies = 0
        self._docker("run", "-d", "--name", "target", "--net", "none", "busybox", "sleep", "3600")
        for what in WHAT:
            self._docker("cp", "-q", str(files / what), f"target:/{what}")

    def copy_in(self, what: str) -> float:
        """Milliseconds."""
        self._copies += 1
        taken = self._time(str(self._files / what), f"target:/{self._copies}")
        if what == "large":
            self._docker("exec", "target", "rm", f"/{self._copies}")
        return taken

    def copy_out(self, what: str) -> float:
        self._copies += 1
        out = self._files / f"{self.name}.{self._copies}"
        taken = self._time(f"target:/{what}", str(out))
        if what == "large":
            out.unlink()
        return taken

    def _time(self, source: str, destination: str) -> float:
        time.sleep(PAUSE)
        begun = time.perf_counter()
        self._docker("cp", "-q", source, destination)
        return (time.perf_counter() - begun) * 1000


def make_files(files: Path, megabytes: int, count: int) -> None:
    (files / "small").write_text("hi\n")
    (files / "few").mkdir()
    for name in ("one", "two", "three"):
        (files / "few" / name).write_text(name * 100)
    with (files / "large").open("wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1 << 20))
    for number in range(count):
        directory = files / "tree" / str(number % 50)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / str(number)).write_text(str(number) * 100)


def main() -> None:
    sheet = Sheet("copies", __doc__, engines="husk,dockerd-new,podman")
    sheet.option("rounds", 11, quick=1)
    sheet.option("megabytes", 200, quick=5, about="of the large file")
    sheet.option("files", 2000, quick=100, about="of the tree")
    sheet.parser.add_argument("--only", choices=WHAT, action="append", help="what to copy; may be given more than once")
    wanted = sheet.read()
    of = {
        "small": "3 bytes",
        "few": "three files",
        "large": f"{wanted.megabytes} MB",
        "tree": f"{wanted.files:,} files",
    }
    with tempfile.TemporaryDirectory(prefix="hkb-cp") as scratch, sheet.running() as running:
        make_files(Path(scratch), wanted.megabytes, wanted.files)
        targets = [Target(engine, Path(scratch)) for engine in running]
        for kind in wanted.only or WHAT:
            for way in ("in", "out"):
                sheet.say(f"{of[kind]} {way}")
                times: dict[str, list[float]] = {target.name: [] for target in targets}
                for number in range(wanted.rounds):
                    for target in random.Random(number).sample(targets, len(targets)):
                        copy = target.copy_in if way == "in" else target.copy_out
                        times[target.name].append(copy(kind))
                first = times[targets[0].name]
                for name, taken in times.items():
                    sheet.add(name, f"`docker cp` {way}", "ms", taken, of=of[kind])
                    if taken is not first:
                        factors = [one / other for one, other in zip(taken, first, strict=True)]
                        sheet.add(name, f"`docker cp` {way} by round", "times as long", factors, of=of[kind])
    sheet.finish()


if __name__ == "__main__":
    main()
