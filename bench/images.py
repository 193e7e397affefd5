"""Speed of images and files: pull, push, save, load, commit, cp and more, beside dockerd and podman.

    sudo .venv/bin/python -m bench.images [--engines husk,dockerd,dockerd-new,podman] [--rounds 3]
    sudo HUSK_BENCH_PEERS=/tmp/peers/bin .venv/bin/python -m bench.images

The script makes the image itself (`contents`) and puts it into a registry on loopback. For every turn an engine is
started anew on a file system that was made for it (`disk`), and is gone afterwards. `processor` is the processor time
of the engine alone, which a busy machine changes less. The first pull of each is not timed: its memory is watched. With
`--quick`, the image is busybox with a few files more.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.contents import SMALL_FILES, archive, debian_base, large_file, small_files, tree
from bench.disk import fresh_disk
from bench.engines import Engine, busybox, engines
from bench.sheet import Sheet
from tests.support.registry import Registry, make_image, upload

# What is over so soon that one attempt tells little is done so many times in each turn.
SHORT = 5

# What was done, and how much it was if not the image: seconds that it took, and those of the engine's processors.
Times = dict[tuple[str, str], list[tuple[float, float]]]


class Round:
    """One engine's turn: does everything once and knows what each step took."""

    def __init__(self, engine: Engine, image: str, files: Path, scratch: Path, scale: int) -> None:
        self.engine = engine
        self.image = image
        self.files = files
        self.scratch = scratch
        self.megabytes = 200 // scale
        self.short = SHORT if scale < 10 else 1
        self.count = 24_000 // scale
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
        large, small = f"{self.megabytes} MB", f"{self.count:,} small files"
        write = ["dd", "if=/dev/urandom", "of=/written", "bs=1M", f"count={self.megabytes}"]
        docker("run", "--name", "writer", "--net", "none", self.image, *write)
        self.time("commit", lambda: docker("commit", "writer", "committed"), of=large)
        docker("rmi", "committed")
        docker("run", "-d", "--name", "target", "--net", "none", self.image, "sleep", "1000")
        for number in range(self.short):
            self.time("cp in", lambda: docker("cp", str(files / "large"), "target:/large"), of=large)
            self.time("cp out", lambda: docker("cp", "target:/large", str(scratch / "large.out")), of=large)
            if number < self.short - 1:
                docker("exec", "target", "rm", "/large")
        self.time("cp in", lambda: docker("cp", str(files / "tree"), "target:/tree"), of=small)
        self.time("cp out", lambda: docker("cp", f"target:/{SMALL_FILES}", str(scratch / "tree.out")), of=small)
        docker("exec", "target", "rm", "/large")
        self.time("commit", lambda: docker("commit", "target", "committed"), of=small)
        self.engine.remove("writer", "target")
        docker("rmi", "committed")

    def time(self, what: str, work: Callable[[], object], of: str = "") -> None:
        os.sync()
        used = self.engine.cpu()
        begin = time.perf_counter()
        work()
        seconds = time.perf_counter() - begin
        self.taken.setdefault((what, of), []).append((seconds, self.engine.cpu() - used))


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
def turn(name: str, scale: int) -> Iterator[tuple[Engine, Path]]:
    """An engine that has just been started, and a directory on the same new file system."""
    with fresh_disk(10 if scale < 10 else 2) as disk, engines([name], network=False, directory=str(disk)) as running:
        yield running[0], disk


def main() -> None:
    sheet = Sheet("images", __doc__, engines="husk,dockerd-new,podman")
    sheet.option("rounds", 3, quick=1)
    sheet.option("scale", 1, quick=100, about="so many times less of everything")
    options = sheet.read()
    with ExitStack() as stack:
        files = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="husk-bench-", dir="/var/tmp")))
        registry = stack.enter_context(Registry())
        sheet.say("making the image")
        image, size = make(registry, options.scale, base=not options.quick)
        (files / "large").write_bytes(large_file(200_000_000 // options.scale))
        tree(files / "tree", 24_000 // options.scale)
        names = sheet.wanted
        # A pull of so little says nothing about memory.
        for name in [] if options.quick else names:
            sheet.say(f"{name}: memory in a pull")
            with turn(name, options.scale) as (engine, _):
                sheet.title(name, engine.title())
                daemon, together = watched_pull(engine, image)
            sheet.add(name, "memory of the daemon in a pull", "MiB", daemon, of=size)
            sheet.add(name, "memory of all processes in a pull", "MiB", together, of=size)
        times: dict[str, Times] = {name: {} for name in names}
        for number in range(options.rounds):
            for name in names if number % 2 == 0 else reversed(names):
                sheet.say(f"round {number + 1} of {options.rounds}, {name}")
                with turn(name, options.scale) as (engine, scratch), Registry() as other:
                    sheet.title(name, engine.title())
                    done = Round(engine, image, files, scratch, options.scale)
                    done.run(f"{other.host}/copy:{number}")
                for step, pairs in done.taken.items():
                    times[name].setdefault(step, []).extend(pairs)
    for name, all_taken in times.items():
        for (what, of), taken in all_taken.items():
            seconds, cpu = zip(*taken, strict=True)
            sheet.add(name, what, "s", seconds, of=of or size)
            sheet.add(name, f"{what}: processor", "s", cpu, of=of or size)
    sheet.finish()


def make(registry: Registry, scale: int, base: bool) -> tuple[str, str]:
    """Put the image into the registry; its name, and how large it is."""
    layers = [debian_base() if base else busybox()]
    layers.append(archive(small_files(24_000 // scale)))
    layers.append(archive(iter([("srv/large", large_file(300_000_000 // scale))])))
    made = make_image(layers, {"Cmd": ["true"]})
    upload(registry, "bench/image", "1", made)
    return f"{registry.host}/bench/image:1", f"{sum(len(blob) for blob in made.blobs.values()) / 1e6:.0f} MB"


if __name__ == "__main__":
    main()
