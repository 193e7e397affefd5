"""How fast do images and files come and go? Pull, push, save, load, commit, cp and more, beside dockerd and podman.

    sudo .venv/bin/python bench/images.py [--engines husk,dockerd,podman] [--rounds 3] [--small]
    sudo HUSK_BENCH_PEERS=/tmp/peers/bin .venv/bin/python bench/images.py

The script makes the image itself (`contents`) and puts it into a registry on loopback. For every turn an engine is
started anew on a file system that was made for it (`disk`), and is gone afterwards. Times are medians of the rounds;
`x` is how many times as long as Husk the engine took. Behind the comma is the processor time of the engine alone, which
a busy machine changes less. The first pull of each is not timed: its memory is watched.
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from contents import SMALL_FILES, archive, debian_base, large_file, small_files, tree
from disk import fresh_disk
from engines import Engine, engines, installed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.registry import Registry, make_image, upload

ALL = "husk,dockerd,dockerd-new,podman"
# What is over so soon that one attempt tells little is done so many times in each turn.
SHORT = 5

# What was done: seconds that it took, and those of the engine's processors.
Times = dict[str, list[tuple[float, float]]]


class Round:
    """One engine's turn: does everything once and knows what each step took."""

    def __init__(self, engine: Engine, image: str, files: Path, scratch: Path, megabytes: int) -> None:
        self.engine = engine
        self.image = image
        self.files = files
        self.scratch = scratch
        self.megabytes = megabytes
        self.taken: Times = {}

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

    def containers(self) -> None:
        """Commits and copies; containers are there and, for copies, running before the clock does."""
        docker, files, scratch = self.engine.docker, self.files, self.scratch
        write = ["dd", "if=/dev/urandom", "of=/written", "bs=1M", f"count={self.megabytes}"]
        docker("run", "--name", "writer", "--net", "none", self.image, *write)
        self.time(f"commit {self.megabytes} MB", lambda: docker("commit", "writer", "committed"))
        docker("rmi", "committed")
        docker("run", "-d", "--name", "target", "--net", "none", self.image, "sleep", "1000")
        for number in range(SHORT):
            self.time(f"cp {self.megabytes} MB in", lambda: docker("cp", str(files / "large"), "target:/large"))
            self.time(f"cp {self.megabytes} MB out", lambda: docker("cp", "target:/large", str(scratch / "large.out")))
            if number < SHORT - 1:
                docker("exec", "target", "rm", "/large")
        self.time("cp tree in", lambda: docker("cp", str(files / "tree"), "target:/tree"))
        self.time("cp tree out", lambda: docker("cp", f"target:/{SMALL_FILES}", str(scratch / "tree.out")))
        docker("exec", "target", "rm", "/large")
        self.time("commit tree", lambda: docker("commit", "target", "committed"))
        docker("rm", "-f", "writer", "target")
        docker("rmi", "committed")

    def time(self, what: str, work: Callable[[], object]) -> None:
        os.sync()
        used = self.engine.cpu()
        begin = time.perf_counter()
        work()
        seconds = time.perf_counter() - begin
        self.taken.setdefault(what, []).append((seconds, self.engine.cpu() - used))


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
    return peak, max(together)


@contextmanager
def turn(name: str) -> Iterator[tuple[Engine, Path]]:
    """An engine that has just been started, and a directory on the same new file system."""
    with fresh_disk(10) as disk, engines([name], network=False, directory=str(disk)) as running:
        yield running[0], disk


def report(titles: dict[str, str], times: dict[str, Times], memory: dict[str, tuple[float, float]]) -> None:
    print("| what | " + " | ".join(titles.values()) + " |")
    print("| --- |" + " --- |" * len(titles))
    own = next(iter(titles))
    for what in times[own]:
        cells = []
        for name in titles:
            seconds, cpu = (statistics.median(column) for column in zip(*times[name][what], strict=True))
            base = statistics.median(each[0] for each in times[own][what])
            ratio = "" if name == own else f" ({seconds / base:.1f}x)"
            cells.append(f"{seconds:.2f} s{ratio}, {cpu:.2f}")
        print(f"| {what} | " + " | ".join(cells) + " |")
    cells = [f"{memory[name][0]:.0f} / {memory[name][1]:.0f} MiB" for name in titles]
    print("| memory in a pull: daemon / all its processes | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default=ALL, help="the first one is what the others are compared with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a tenth of everything, to try the script")
    options = parser.parse_args()
    scale = 10 if options.small else 1
    with ExitStack() as stack:
        files = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="husk-bench-", dir="/var/tmp")))
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
        (files / "large").write_bytes(large_file(200_000_000 // scale))
        tree(files / "tree", 24_000 // scale)
        titles: dict[str, str] = {}
        memory: dict[str, tuple[float, float]] = {}
        for name in installed(options.engines.split(",")):
            with turn(name) as (engine, _):
                titles[name] = engine.title()
                memory[name] = watched_pull(engine, image)
        times: dict[str, Times] = {name: {} for name in titles}
        for number in range(options.rounds):
            for name in titles if number % 2 == 0 else reversed(titles):
                with turn(name) as (engine, scratch), Registry() as other:
                    done = Round(engine, image, files, scratch, 200 // scale)
                    done.run(f"{other.host}/copy:{number}")
                for what, taken in done.taken.items():
                    times[name].setdefault(what, []).extend(taken)
                shown = (
                    f"{what} {statistics.median(each[0] for each in taken):.2f}" for what, taken in done.taken.items()
                )
                print(f"# round {number + 1} {name}:", *shown, flush=True)
        report(titles, times, memory)


if __name__ == "__main__":
    main()
