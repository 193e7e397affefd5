"""Files of ours that run code between a request and its answer, by tracing: how much there is to read behind a command.

    sudo scripts/walk run|pull|build|service [--names] [--cold]

`run` is `docker run --rm busybox echo hi`, `pull` that of an image of two layers from a registry on loopback, `build`
one of RUN and COPY with buildx, `service` that of a service with one task for each of three managers. The daemon and
its workers are traced. Each command runs once unseen, so that what is loaded and begun once is not counted; `--cold`
counts the first one. `--names` prints the files, those of workers too; a file counts once, wherever it runs.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import walked
from bench.build import BUILDX
from tests.support.daemon import SOURCES, Daemon
from tests.support.hosts import Hosts
from tests.support.registry import Registry, push_image, tar_of

ROOT = Path(__file__).resolve().parents[1]
IMAGE = "busybox"
_DOCKERFILE = "FROM busybox\nARG NUMBER\nCOPY file /file\nRUN cat /file && echo $NUMBER\n"
# How long what a command has begun may go on behind its answer.
_SETTLE = 1.0


class Notes:
    """The place where traced processes note what they run."""

    def __init__(self, top: Path) -> None:
        self._place = top / "walk"
        self._names = walked.source_files()
        self._place.write_bytes(bytes(1 + len(self._names)))
        self._number = 0
        python = Path(f"{self._place}.python")
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {walked.__file__} {self._place} "$@"\n')
        python.chmod(0o755)
        hook = top / "hook"
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(
            f"import sys\nsys.path += [{str(SOURCES)!r}, {str(ROOT)!r}]\nfrom bench import walked\n"
            f"walked.install({str(self._place)!r})\nwalked.lead_through({str(self._place)!r})\n"
        )
        # Not with the sources: a daemon of theirs is watched for stalls, and tracing makes it slow.
        self.environment = {"PYTHONPATH": str(hook)}

    def files(self, command: Callable[[], None]) -> list[str]:
        """Run a command, and return the files of ours that ran code meanwhile."""
        self._number += 1
        self._write(self._number)
        try:
            command()
        finally:
            self._write(0)
        noted = self._place.read_bytes()[1:]
        return [name for name, number in zip(self._names, noted, strict=True) if number == self._number]

    def _write(self, number: int) -> None:
        with self._place.open("r+b") as file:
            file.write(bytes([number]))


class Client:
    """The docker command, asked to do one thing after another at one daemon."""

    def __init__(self, daemon: Daemon, top: Path) -> None:
        plugins = top / "cli" / "cli-plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (plugins / "docker-buildx").symlink_to(BUILDX)
        self._environment = {**os.environ, "DOCKER_HOST": daemon.host, "DOCKER_CONFIG": str(top / "cli")}

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            ["docker", *arguments], env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"docker {' '.join(arguments)}: {done.stderr}")
        return done.stdout


Command = Callable[[], None]


@contextlib.contextmanager
def run(notes: Notes, top: Path) -> Iterator[Command]:
    with Daemon(environment=notes.environment) as daemon:
        docker = Client(daemon, top)
        yield lambda: _expect(docker("run", "--rm", IMAGE, "echo", "hi"), "hi\n")


@contextlib.contextmanager
def pull(notes: Notes, top: Path) -> Iterator[Command]:
    with Registry() as registry, Daemon(environment=notes.environment) as daemon:
        docker = Client(daemon, top)
        number = 0

        def command() -> None:
            nonlocal number
            number += 1
            layers = [tar_of({name: str(number).encode()}) for name in ("one", "two")]
            push_image(registry, "box", str(number), layers)
            docker("pull", "-q", f"{registry.host}/box:{number}")

        yield command


@contextlib.contextmanager
def build(notes: Notes, top: Path) -> Iterator[Command]:
    if not BUILDX:
        raise SystemExit("there is no buildx: scripts/setup --test takes one")
    context = top / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(_DOCKERFILE)
    with Daemon(environment=notes.environment) as daemon:
        docker = Client(daemon, top)

        def command() -> None:
            number = str(time.monotonic_ns())
            (context / "file").write_text(number)
            docker("buildx", "build", "-q", "-t", "walk", "--build-arg", f"NUMBER={number}", str(context))

        yield command


@contextlib.contextmanager
def service(notes: Notes, top: Path) -> Iterator[Command]:
    with Hosts(3) as hosts, contextlib.ExitStack() as stack:
        daemons = [host.daemon(environment=notes.environment) for host in hosts]
        clients = [Client(daemon, top) for daemon in daemons]
        for client in clients:
            stack.callback(client, "swarm", "leave", "--force")
        clients[0]("swarm", "init", "--advertise-addr", hosts[0].address)
        token = clients[0]("swarm", "join-token", "-q", "manager").strip()
        for client in clients[1:]:
            client("swarm", "join", "--token", token, f"{hosts[0].address}:2377")
        names: list[str] = []

        def command() -> None:
            names.append(f"walk{len(names)}")
            clients[0]("service", "create", "-q", "--name", names[-1], "--replicas", "3", IMAGE, "sleep", "1000")

        yield command
        clients[0]("service", "rm", *names)


def _expect(found: str, wanted: str) -> None:
    if found != wanted:
        raise SystemExit(f"the command printed {found!r} and not {wanted!r}")


WALKS = {"run": run, "pull": pull, "build": build, "service": service}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walk", choices=WALKS, nargs="+")
    parser.add_argument("--names", action="store_true", help="print the files too")
    parser.add_argument("--cold", action="store_true", help="count the first command, with all that it loads")
    options = parser.parse_args()
    for walk in options.walk:
        top = Path(tempfile.mkdtemp(prefix="hkw-", dir="/tmp"))
        try:
            notes = Notes(top)
            with WALKS[walk](notes, top) as command:
                if not options.cold:
                    command()
                    time.sleep(_SETTLE)
                files = notes.files(command)
        finally:
            shutil.rmtree(top, ignore_errors=True)
        lines = sum(len((SOURCES / "husk" / file).read_bytes().splitlines()) for file in files)
        rooms = Counter("/".join(file.split("/")[:2]) if file.count("/") > 1 else file.split("/")[0] for file in files)
        print(f"{walk}: {len(files)} files of {lines:,} lines in {len(rooms)} rooms")
        if options.names:
            print("".join(f"    {file}\n" for file in files), end="")


if __name__ == "__main__":
    main()
