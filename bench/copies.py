"""How long does `docker cp` take? A small file, a large one and a tree of small ones, into a running container and out.

    sudo python bench/copies.py                  # husk and dockerd
    sudo python bench/copies.py --rounds 15 husk dockerd-new podman

Each copy is made once by every engine before the next round begins, so that a busy machine slows all of them alike.
Every second round goes through the engines backwards: whoever is first finds other caches than whoever is last.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from engines import Engine, engines

LARGE = 200 << 20
TREE = 2000
PAUSE = 0.05


class Target:
    """A running container of one engine, and what is copied into it and back."""

    def __init__(self, engine: Engine, files: Path) -> None:
        self.name = engine.name
        self._docker = engine.docker
        self._files = files
        self._docker("run", "-d", "--name", "target", "--net", "none", "busybox", "sleep", "3600")

    def copy_in(self, what: str) -> float:
        """Seconds; afterwards it is not there any more."""
        taken = self._time(str(self._files / what), "target:/copied")
        self._clear()
        return taken

    def copy_out(self, what: str) -> float:
        out = self._files / "out"
        self._docker("cp", "-q", str(self._files / what), "target:/copied")
        taken = self._time("target:/copied", str(out))
        shutil.rmtree(out) if out.is_dir() else out.unlink()
        self._clear()
        return taken

    def _time(self, source: str, destination: str) -> float:
        time.sleep(PAUSE)
        begun = time.perf_counter()
        self._docker("cp", "-q", source, destination)
        return time.perf_counter() - begun

    def _clear(self) -> None:
        self._docker("exec", "target", "rm", "-rf", "/copied")

    def close(self) -> None:
        self._docker("rm", "-f", "target")


def make_files(files: Path) -> list[str]:
    (files / "small").write_text("hi\n")
    with (files / "large").open("wb") as file:
        for _ in range(LARGE >> 20):
            file.write(os.urandom(1 << 20))
    for number in range(TREE):
        directory = files / "tree" / str(number % 50)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / str(number)).write_text(str(number) * 100)
    return ["small", "large", "tree"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engines", nargs="*", default=["husk", "dockerd"])
    parser.add_argument("--rounds", type=int, default=11)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hkb-cp") as scratch, engines(wanted.engines) as running:
        kinds = make_files(Path(scratch))
        targets = [Target(engine, Path(scratch)) for engine in running]
        for kind in kinds:
            for way in ("in", "out"):
                times: dict[str, list[float]] = {target.name: [] for target in targets}
                for number in range(wanted.rounds):
                    for target in targets if number % 2 else reversed(targets):
                        copy = target.copy_in if way == "in" else target.copy_out
                        times[target.name].append(copy(kind) * 1000)
                medians = [f"{name} {statistics.median(taken):.1f} ({min(taken):.1f})" for name, taken in times.items()]
                print(f"{kind:5} {way:3} median (best) in ms: {', '.join(medians)}", flush=True)
        for target in targets:
            target.close()


if __name__ == "__main__":
    main()
