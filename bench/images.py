"""How fast do images come and go? Cold pull, push, save, load and remove, beside dockerd and podman.

    sudo .venv/bin/python bench/images.py [--engines husk,dockerd,podman] [--rounds 3] [--small]

The script makes the image itself and puts it into a registry on loopback: a base like Debian's, a layer with 24,000
small files, and one 300 MB file that compresses badly. Every engine gets directories of its own and is gone afterwards.
Times are medians of the rounds, taken in turns so that a busy disk is everybody's. Memory is the daemon's peak (VmHWM)
without its workers.
"""

import argparse
import contextlib
import hashlib
import io
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.support.registry import Registry, make_image, upload  # noqa: E402

OPERATIONS = ("pull", "save", "push", "remove", "load")


class Engine:
    """A daemon that the docker command can talk to."""

    name = ""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.host = f"unix://{directory}/s"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    @contextlib.contextmanager
    def running(self) -> Iterator["Engine"]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        with (self.directory / "log").open("wb") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        try:
            deadline = time.monotonic() + 60
            while self.docker("version", check=False) != 0:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{self.name} does not start: see {self.directory}/log")
                time.sleep(0.1)
            yield self
        finally:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
            self.process.kill()
            self.process.wait()

    def docker(self, *arguments: str, check: bool = True, stdout: int | None = None, stdin: int | None = None) -> int:
        environment = {**os.environ, "DOCKER_HOST": self.host, "DOCKER_CONFIG": str(self.directory / "docker")}
        done = subprocess.run(
            ["docker", *arguments],
            env=environment,
            stdin=stdin if stdin is not None else subprocess.DEVNULL,
            stdout=stdout if stdout is not None else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if check and done.returncode != 0:
            raise SystemExit(f"{self.name}: docker {' '.join(arguments)}: {done.stderr.decode()}")
        return done.returncode

    def peak_memory(self) -> float:
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Husk(Engine):
    name = "husk"

    def command(self) -> list[str]:
        (self.directory / "daemon.json").write_text("{}")
        return [
            sys.executable, "-m", "husk", "serve", "-H", self.host, "--data-root", f"{self.directory}/data",
            "--exec-root", f"{self.directory}/run", "--config-file", f"{self.directory}/daemon.json",
            "--bip", "10.207.250.1/24",
        ]  # fmt: skip


class Dockerd(Engine):
    name = "dockerd"

    def command(self) -> list[str]:
        (self.directory / "daemon.json").write_text("{}")
        return [
            "dockerd", "-H", self.host, "--data-root", f"{self.directory}/data", "--exec-root",
            f"{self.directory}/run", "--pidfile", f"{self.directory}/pid", "--bridge=none", "--iptables=false",
            "--ip6tables=false", "--config-file", f"{self.directory}/daemon.json",
        ]  # fmt: skip


class Podman(Engine):
    name = "podman"

    def command(self) -> list[str]:
        insecure = self.directory / "registries.conf"
        insecure.write_text('[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n')
        os.environ["CONTAINERS_REGISTRIES_CONF"] = str(insecure)
        return [
            "podman", "--root", f"{self.directory}/data", "--runroot", f"{self.directory}/run", "system", "service",
            "--time=0", self.host,
        ]  # fmt: skip


ENGINES: dict[str, tuple[type[Engine], str]] = {
    "husk": (Husk, "conmon"),
    "dockerd": (Dockerd, "dockerd"),
    "podman": (Podman, "podman"),
}


def debian_like(files: int) -> bytes:
    """A base tree: text, programs and libraries of the usual sizes."""
    rng = random.Random(1)
    words = [hashlib.sha256(b"%d" % number).hexdigest()[: rng.randrange(3, 12)] for number in range(5000)]
    contents: list[tuple[str, bytes]] = []
    for number in range(files):
        size = int(min(2_000_000, rng.lognormvariate(8.5, 1.8)))
        if number % 3:
            body = " ".join(rng.choices(words, k=size // 8 + 1)).encode()[:size]
        else:
            body = rng.randbytes(size // 2) + bytes(size // 2)
        contents.append((f"usr/share/d{number % 311}/f{number}", body))
    return archive(contents)


def small_files(files: int) -> bytes:
    rng = random.Random(2)
    text = b"".join(b"def function_%d(argument):\n    return argument * %d\n" % (n, n) for n in range(400))
    contents = []
    for number in range(files):
        begin = rng.randrange(len(text) // 2)
        body = text[begin : begin + rng.randrange(100, 9000)]
        contents.append((f"usr/lib/python/p{number % 997}/m{number}.py", body))
    return archive(contents)


def one_large_file(size: int) -> bytes:
    rng = random.Random(3)
    return archive([("srv/large", b"".join(rng.randbytes(1_000_000) for _ in range(size // 1_000_000)))])


def archive(contents: list[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    directories: set[str] = set()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, body in contents:
            parts = name.split("/")[:-1]
            for depth in range(1, len(parts) + 1):
                directory = "/".join(parts[:depth])
                if directory not in directories:
                    directories.add(directory)
                    entry = tarfile.TarInfo(directory)
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(entry)
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(body), 0o644, 1_700_000_000
            tar.addfile(entry, io.BytesIO(body))
    return out.getvalue()


def timed(work: Callable[[], object]) -> float:
    os.sync()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(engine: Engine, name: str, target: str, archive_path: Path) -> dict[str, float]:
    """One round: what each operation took."""
    taken = {"pull": timed(lambda: engine.docker("pull", "-q", name))}
    with archive_path.open("wb") as out:
        taken["save"] = timed(lambda: engine.docker("save", name, stdout=out.fileno()))
    engine.docker("tag", name, target)
    taken["push"] = timed(lambda: engine.docker("push", "-q", target))
    engine.docker("rmi", target)
    taken["remove"] = timed(lambda: engine.docker("rmi", name))
    with archive_path.open("rb") as file:
        taken["load"] = timed(lambda: engine.docker("load", "-q", stdin=file.fileno()))
    engine.docker("rmi", name)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="husk,dockerd,podman")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a tenth of everything, to try the script")
    options = parser.parse_args()
    scale = 10 if options.small else 1
    chosen = []
    for name in options.engines.split(","):
        if shutil.which(ENGINES[name][1]):
            chosen.append(name)
        else:
            print(f"{name} is not installed: left out")
    with tempfile.TemporaryDirectory(prefix="husk-bench-", dir="/var/tmp") as top:
        layers = [debian_like(9000 // scale), small_files(24_000 // scale), one_large_file(300_000_000 // scale)]
        image = make_image(layers, {"Cmd": ["true"]})
        compressed = sum(len(blob) for blob in image.blobs.values())
        print(f"image: {compressed / 1e6:.0f} MB in the registry, {sum(map(len, layers)) / 1e6:.0f} MB unpacked")
        with Registry() as registry, contextlib.ExitStack() as stack:
            upload(registry, "bench/image", "1", image)
            del layers, image
            results: dict[str, dict[str, list[float]]] = {name: {op: [] for op in OPERATIONS} for name in chosen}
            engines = {}
            for name in chosen:
                directory = Path(top) / name
                directory.mkdir()
                engines[name] = stack.enter_context(ENGINES[name][0](directory).running())
            for round_ in range(options.rounds):
                for name, engine in engines.items():
                    with Registry() as other:
                        source, target = f"{registry.host}/bench/image:1", f"{other.host}/copy:{round_}"
                        for op, seconds in measure(engine, source, target, Path(top) / "archive.tar").items():
                            results[name][op].append(seconds)
            print(f"{'':10}" + "".join(f"{op:>10}" for op in OPERATIONS) + f"{'peak MiB':>10}")
            for name, engine in engines.items():
                medians = [statistics.median(results[name][op]) for op in OPERATIONS]
                print(f"{name:10}" + "".join(f"{m:>9.2f}s" for m in medians) + f"{engine.peak_memory():>10.0f}")


if __name__ == "__main__":
    main()
