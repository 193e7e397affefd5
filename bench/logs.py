"""Time of `docker logs` of a long log: 200 MB in lines of 100 bytes, with the docker command and without.

    sudo HUSK_BENCH_PEERS=/tmp/peers/bin .venv/bin/python -m bench.logs
    sudo .venv/bin/python -m bench.logs --engines husk,dockerd --size 50

The rounds of all engines alternate. The docker command takes frames apart itself, whatever the engine: `floor` is how
long it takes for the same bytes from a server that does nothing but send them. The engine's processor time is what a
busy machine changes least.
"""

import contextlib
import functools
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.engines import Engine
from bench.sheet import Sheet

LINE = "x" * 99
PIECE = 1 << 18


class Target:
    """A container of one engine that has written its lines and ended."""

    def __init__(self, engine: Engine, megabytes: int) -> None:
        self.name = engine.name
        self.ways = (
            ("bare HTTP", self.raw),
            ("`docker logs`", self.docker),
            ("`docker logs --timestamps`", self.timestamps),
        )
        self._engine = engine
        self.cpu = engine.cpu
        self._api = engine.connection()
        write = f"yes {LINE} | head -n {megabytes * 10_000}"
        wish = {"Image": "busybox", "Cmd": ["sh", "-c", write], "HostConfig": {"NetworkMode": "none"}}
        self._id = self._api.call("POST", "/v1.40/containers/create", wish)[1]["Id"]
        self._api.call("POST", f"/v1.40/containers/{self._id}/start")
        # A wait of the API would run into the time limit of this connection.
        while self._api.call("GET", f"/v1.40/containers/{self._id}/json")[1]["State"]["Running"]:
            time.sleep(0.1)

    def answer(self) -> Iterator[bytes]:
        connection = self._engine.connection()
        connection.request("GET", f"/v1.40/containers/{self._id}/logs?stdout=1&stderr=1")
        response = connection.getresponse()
        while piece := response.read1(PIECE):
            yield piece
        connection.close()

    def raw(self) -> int:
        """Count the bytes of the log that come over the API."""
        return sum(map(len, self.answer()))

    def docker(self) -> None:
        self._engine.docker("logs", self._id)

    def timestamps(self) -> None:
        self._engine.docker("logs", "--timestamps", self._id)


@contextlib.contextmanager
def sender(body: Path, directory: Path) -> Iterator[Path]:
    """A server that answers every request for a log with the same bytes."""
    path = directory / "floor"
    inspect = b'{"Id":"x","Config":{"Tty":false}}'
    head = b"HTTP/1.1 200 OK\r\nApi-Version: 1.40\r\nConnection: close\r\n"

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                request = connection.recv(1 << 16)
                if b"/logs" in request:
                    connection.sendall(head + b"Content-Type: application/vnd.docker.raw-stream\r\n\r\n")
                    with body.open("rb") as data:
                        connection.sendfile(data)
                else:
                    connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(inspect) + inspect)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield path
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def taken(work: Callable[[], object], cpu: Callable[[], float] = lambda: 0.0) -> tuple[float, float]:
    """Seconds, and seconds of processor time."""
    used, begun = cpu(), time.perf_counter()
    work()
    return time.perf_counter() - begun, cpu() - used


def main() -> None:
    sheet = Sheet("logs", __doc__, engines="husk,dockerd-new,podman")
    sheet.option("size", 200, quick=5, about="megabytes of lines")
    sheet.option("rounds", 3, quick=1)
    given = sheet.read()
    times: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with sheet.running() as running:
        sheet.say(f"writing {given.size} MB")
        targets = [Target(engine, given.size) for engine in running]
        frames = given.size * 10_000 * 108
        for target in targets:
            # A line may be cut in two where a piece of the log ends, and podman's pieces are small.
            if not frames <= (size := target.raw()) <= frames * 1.01:
                raise SystemExit(f"{target.name}: {size} bytes came for {frames}")
        body = running[0].directory / "frames"
        with body.open("wb") as file:
            file.writelines(targets[0].answer())
        with sender(body, running[0].directory) as floor:
            command = ["docker", "-H", f"unix://{floor}", "logs", "x"]
            for number in range(given.rounds):
                sheet.say(f"round {number + 1} of {given.rounds}")
                for target in targets:
                    for what, work in target.ways:
                        times.setdefault((target.name, what), []).append(taken(work, target.cpu))
                run = functools.partial(subprocess.run, command, stdout=subprocess.DEVNULL, check=True)
                times.setdefault(("floor", "`docker logs`"), []).append(taken(run))
    for (name, what), rounds in times.items():
        seconds, cpu = zip(*rounds, strict=True)
        sheet.add(name, what, "s", seconds, of=f"{given.size} MB")
        if name != "floor":
            sheet.add(name, f"{what}: processor", "s", cpu, of=f"{given.size} MB")
    sheet.finish()


if __name__ == "__main__":
    main()
