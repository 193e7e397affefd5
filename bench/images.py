"""How fast do images and files come and go? Pull, push, save, load, commit, cp and more, beside dockerd and podman.

    sudo .venv/bin/python bench/images.py [--engines husk,dockerd,podman] [--rounds 3] [--small]
    sudo HUSK_BENCH_PEERS=/tmp/peers/bin .venv/bin/python bench/images.py

The script makes the image itself (`contents`) and puts it into a registry on loopback. Every engine gets directories of
its own and is gone afterwards. Times are medians of the rounds, taken in turns so that a busy disk is everybody's;
`x` is how many times as long as Husk the engine took. Behind the comma is the processor time of the engine alone, which
a busy machine changes less. The first pull of each is not timed: its memory is watched.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from contents import SMALL_FILES, archive, debian_base, large_file, small_files, tree
from engines import Engine, engines

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.registry import Registry, make_image, upload

ALL = "husk,dockerd,dockerd-new,podman"


class Round:
    """One engine's turn: does everything once and knows what each step took."""

    def __init__(self, engine: Engine, image: str, scratch: Path, megabytes: int) -> None:
        self.engine = engine
        self.image = image
        self.scratch = scratch
        self.megabytes = megabytes
        self.taken: dict[str, tuple[float, float]] = {}

    def run(self, target: str) -> None:
        docker, image, saved = self.engine.docker, self.image, self.scratch / "saved.tar"
        self.time("pull", lambda: docker("pull", "-q", image))
        with saved.open("wb") as out:
            self.time("save", lambda: docker("save", image, stdout=out.fileno()))
        docker("tag", image, target)
        self.time("push", lambda: docker("push", "-q", target))
        docker("rmi", target)
        self.containers()
        self.time("remove", lambda: docker("rmi", image))
        with saved.open("rb") as file:
            self.time("load", lambda: docker("load", "-q", stdin=file.fileno()))
        docker("rmi", image)
        saved.unlink()

    def containers(self) -> None:
        """Commits and copies; containers are there and, for copies, running before the clock does."""
        docker, files = self.engine.docker, self.scratch
        write = ["dd", "if=/dev/urandom", "of=/written", "bs=1M", f"count={self.megabytes}"]
        docker("run", "--name", "writer", "--net", "none", self.image, *write)
        self.time(f"commit {self.megabytes} MB", lambda: docker("commit", "writer", "committed"))
        docker("rmi", "committed")
        docker("run", "-d", "--name", "target", "--net", "none", self.image, "sleep", "1000")
        self.time(f"cp {self.megabytes} MB in", lambda: docker("cp", str(files / "large"), "target:/large"))
        self.time(f"cp {self.megabytes} MB out", lambda: docker("cp", "target:/large", str(files / "large.out")))
        self.time("cp tree in", lambda: docker("cp", str(files / "tree"), "target:/tree"))
        self.time("cp tree out", lambda: docker("cp", f"target:/{SMALL_FILES}", str(files / "tree.out")))
        docker("exec", "target", "rm", "/large")
        self.time("commit tree", lambda: docker("commit", "target", "committed"))
        docker("rm", "-f", "writer", "target")
        docker("rmi", "committed")
        (files / "large.out").unlink()
        shutil.rmtree(files / "tree.out")

    def time(self, what: str, work: Callable[[], object]) -> None:
        os.sync()
        used = self.engine.cpu()
        begin = time.perf_counter()
        work()
        seconds = time.perf_counter() - begin
        self.taken[what] = seconds, self.engine.cpu() - used


def watched_pull(engine: Engine, image: str) -> tuple[float, float]:
    """MiB at most during a pull: of the daemon itself, and of all its processes."""
    together = [engine.pss()]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            together.append(engine.pss())

    watcher = threading.Thread(target=watch)
    watcher.start()
    engine.forget_peak()
    engine.docker("pull", "-q", image)
    peak = engine.peak()
    done.set()
    watcher.join()
    engine.docker("rmi", image)
    return peak, max(together)


Times = dict[str, list[tuple[float, float]]]


def report(running: list[Engine], times: dict[str, Times], memory: dict[str, tuple[float, float]]) -> None:
    print("| what | " + " | ".join(engine.title() for engine in running) + " |")
    print("| --- |" + " --- |" * len(running))
    own = running[0].name
    for what in times[own]:
        cells = []
        for engine in running:
            seconds, cpu = (statistics.median(column) for column in zip(*times[engine.name][what], strict=True))
            base = statistics.median(each[0] for each in times[own][what])
            ratio = "" if engine.name == own else f" ({seconds / base:.1f}x)"
            cells.append(f"{seconds:.2f} s{ratio}, {cpu:.2f}")
        print(f"| {what} | " + " | ".join(cells) + " |")
    cells = [f"{memory[engine.name][0]:.0f} / {memory[engine.name][1]:.0f} MiB" for engine in running]
    print("| memory in a pull: daemon / all its processes | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default=ALL, help="the first one is what the others are compared with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a tenth of everything, to try the script")
    options = parser.parse_args()
    scale = 10 if options.small else 1
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="husk-bench-", dir="/var/tmp")))
        registry = stack.enter_context(Registry())
        layers = [
            debian_base(),
            archive(small_files(24_000 // scale)),
            archive(iter([("srv/large", large_file(300_000_000 // scale))])),
        ]
        made = make_image(layers, {"Cmd": ["true"]})
        size = sum(len(blob) for blob in made.blobs.values())
        print(f"image: {size / 1e6:.0f} MB in the registry, {sum(map(len, layers)) / 1e6:.0f} MB unpacked")
        upload(registry, "bench/image", "1", made)
        del layers, made
        image = f"{registry.host}/bench/image:1"
        (scratch / "large").write_bytes(large_file(200_000_000 // scale))
        tree(scratch / "tree", 24_000 // scale)
        running = stack.enter_context(engines(options.engines.split(","), network=False, directory="/var/tmp"))
        memory = {engine.name: watched_pull(engine, image) for engine in running}
        times: dict[str, Times] = {engine.name: {} for engine in running}
        for number in range(options.rounds):
            for engine in running if number % 2 == 0 else reversed(running):
                with Registry() as other:
                    turn = Round(engine, image, scratch, 200 // scale)
                    turn.run(f"{other.host}/copy:{number}")
                for what, taken in turn.taken.items():
                    times[engine.name].setdefault(what, []).append(taken)
                print(f"# round {number + 1} {engine.name}:", *(f"{w} {s:.2f}" for w, (s, _) in turn.taken.items()))
        report(running, times, memory)


if __name__ == "__main__":
    main()
