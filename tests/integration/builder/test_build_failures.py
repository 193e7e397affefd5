"""Builds that are cut off: clients that go at any moment, daemons that are killed, a disk that is full."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.build_parity import base_images
from tests.support.building import Builds, Context, needs_buildx
from tests.support.cutting import CutConnection
from tests.support.daemon import Daemon
from tests.support.disk import small_disk
from tests.support.doctor import assert_sound
from tests.support.images import forget_images
from tests.support.registry import tar_of
from tests.support.waiting import until

pytestmark = needs_buildx

STEP = f"sleep 600.{os.getpid()}"  # tests of this file may run side by side
LONG = f"""FROM busybox AS other
COPY a /a
RUN --mount=type=cache,target=/c,sharing=locked touch /c/begun && {STEP}
FROM busybox
COPY . /all/
COPY --from=other /a /b
"""


@pytest.fixture
def builds(daemon: Daemon, tmp_path: Path) -> Iterator[Builds]:
    yield context_of(daemon, tmp_path)
    forget_images(daemon)
    daemon.docker("builder", "prune", "-af")


def context_of(daemon: Daemon, directory: Path) -> Builds:
    context = directory / "context"
    context.mkdir()
    return Builds(daemon, Context(context), buildkit=True)


def begin(builds: Builds, *options: str, host: str = "") -> "subprocess.Popen[str]":
    environment = {**os.environ, "DOCKER_CONFIG": str(builds.config_directory), "DOCKER_HOST": host}
    return subprocess.Popen(
        ["docker", "build", "--progress=plain", "-t", "built", *options, str(builds.context.path)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def under_way(way: CutConnection, client: "subprocess.Popen[str]") -> bool:
    return way.is_cut.is_set() or client.poll() is not None or running()


def running(command: str = STEP) -> bool:
    return subprocess.run(["pgrep", "-xf", command], capture_output=True).returncode == 0


def nothing_is_left(daemon: Daemon) -> None:
    """No process, mount or control group, no half layer; the lock of the cache is free."""
    until(lambda: not running(), "the step's process ends")
    until(lambda: not os.listdir(daemon.config.data_root / "layers/w"), "workspaces go")
    until(lambda: not os.listdir(daemon.config.data_root / "layers/trash"), "half layers go")
    daemon.check_no_litter()


def test_clients_that_go_after_any_message(
    builds: Builds, daemon: Daemon, tmp_path: Path, chance: random.Random
) -> None:
    builds.context.write({"Dockerfile": LONG, "a": "1", "many/b": "2", "large": bytes(1 << 20)})
    for pieces in (*chance.sample(range(1, 40), 5), 1000):
        with CutConnection(Path("/tmp") / f"hkc-{os.getpid()}-{pieces}", daemon.socket_path, pieces) as way:
            client = begin(builds, host=f"unix://{way.path}")
            until(partial(under_way, way, client), "the build is under way")
            way.cut()
            client.communicate(timeout=30)
            assert client.returncode != 0
        nothing_is_left(daemon)
    builds.run(LONG.replace(STEP, "true"))
    assert builds.sh("cat /all/many/b /b") == "21"


def test_clients_of_the_classic_door_that_go(builds: Builds, daemon: Daemon) -> None:
    body = tar_of({"Dockerfile": LONG.encode(), "a": b"1", "large": bytes(1 << 20)})
    head = f"POST /v1.41/build HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for end in (len(head) // 2, len(head), len(head) + 700, len(head) + len(body) // 2, len(head) + len(body)):
        with contextlib.closing(daemon.raw()) as channel:
            channel.sendall((head + body)[:end])
            if end == len(head) + len(body):
                until(running, "the step runs")
        nothing_is_left(daemon)
    builds.run(LONG.replace(STEP, "true"), files={"a": "1"})


def test_ctrl_c_ends_a_build(builds: Builds, daemon: Daemon) -> None:
    builds.context.write({"Dockerfile": LONG, "a": "1"})
    client = begin(builds, host=daemon.host)
    until(running, "the step runs")
    client.send_signal(signal.SIGINT)
    until(lambda: not running(), "the step's process ends")
    client.communicate(timeout=30)
    nothing_is_left(daemon)


def test_a_build_ends_with_the_connection_of_its_client(builds: Builds, daemon: Daemon, tmp_path: Path) -> None:
    builds.context.write({"Dockerfile": LONG, "a": "1"})
    with CutConnection(tmp_path / "way", Path(daemon.host.removeprefix("unix://")), 1 << 30) as way:
        client = begin(builds, host=f"unix://{way.path}")
        until(running, "the step runs")
        way.cut()
        until(lambda: not running(), "the step's process ends")
        client.communicate(timeout=30)
    nothing_is_left(daemon)


def test_a_daemon_that_is_killed_in_a_build(fresh_daemon: Daemon, tmp_path: Path, chance: random.Random) -> None:
    builds = context_of(fresh_daemon, tmp_path)
    dockerfile = (
        "FROM busybox AS one\nCOPY data /data\nRUN --mount=type=cache,target=/c,sharing=locked "
        "cat /data /data > /twice; sleep 0.2; cp /twice /c/; rm /data\n"
        "FROM busybox\nCOPY --from=one /twice /\nCOPY . /all/\nRUN md5sum /twice /all/data > /sums\n"
    )
    data = chance.randbytes(12 << 20)
    builds.context.write({"Dockerfile": dockerfile, "data": data})
    for _ in range(3):
        client = begin(builds, "--no-cache", host=fresh_daemon.host)
        time.sleep(chance.uniform(0.2, 2.0))
        fresh_daemon.kill9()
        client.communicate(timeout=30)
        fresh_daemon.start()
    builds.run(dockerfile)
    assert builds.sh("md5sum /twice /all/data | cmp - /sums; cat /data 2>/dev/null | wc -c; wc -c < /twice") == (
        f"0\n{2 * len(data)}\n"
    )
    fresh_daemon.stop()
    assert_sound(fresh_daemon)
    fresh_daemon.start()


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    with small_disk(64) as disk, Daemon(data_root=disk.root / "data") as daemon:
        builds = context_of(daemon, tmp_path)
        for dockerfile, files in (
            ("FROM busybox\nRUN dd if=/dev/zero of=/big bs=1M count=100\n", {}),
            ("FROM busybox\nCOPY big /\n", {"big": bytes(100 << 20)}),
            # It fits once, and not twice: as a layer's files and as its archive.
            ("FROM busybox\nRUN dd if=/dev/urandom of=/half bs=1M count=30\n", {}),
        ):
            done = builds.run(dockerfile, check=False, files=files)
            assert done.returncode != 0
            assert "no space left on device" in done.stderr.lower()
            (builds.context.path / "big").unlink(missing_ok=True)
            nothing_is_left(daemon)
            daemon.docker("builder", "prune", "-af")
        builds.run("FROM busybox\nRUN echo fits > /small\n")
        assert builds.sh("cat /small") == "fits\n"
        forget_images(daemon)


def test_secrets_are_nowhere_afterwards(builds: Builds, daemon: Daemon, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    dockerfile = """FROM busybox
RUN --mount=type=secret,id=file test $(wc -c < /run/secrets/file) = 32
RUN --mount=type=secret,id=variable,env=TOKEN test ${#TOKEN} = 32
"""
    path = str(builds.context.write({"Dockerfile": dockerfile}).path)
    given = ("--secret", f"id=file,src={secret}", "--secret", "id=variable,env=VALUE")
    for text in ("first-secret-that-nobody-may-see", "other-secret-that-nobody-may-see"):
        secret.write_text(text)
        done = builds.docker("build", "--progress=plain", "-t", "built", *given, path, env={"VALUE": text})
    # Another value is no other build.
    assert done.stderr.count("CACHED") == 3
    for root in (daemon.config.data_root, daemon.config.exec_root, daemon.directory):
        found = subprocess.run(["grep", "-rlaE", "(first|other)-secret", str(root)], capture_output=True, text=True)
        assert found.stdout == ""


def test_an_agent_of_the_client(builds: Builds, daemon: Daemon, tmp_path: Path) -> None:
    builds.context.write({"Dockerfile": f"FROM busybox\nRUN --mount=type=ssh test -S $SSH_AUTH_SOCK; {STEP} || true\n"})
    with Agent(tmp_path / "agent") as agent:
        client = begin(builds, "--ssh", f"default={agent.path}", host=daemon.host)
        until(running, "the step runs")
        pid = subprocess.run(["pgrep", "-xf", STEP], capture_output=True, text=True).stdout.strip()
        # busybox has no program that connects to a socket: we do, from outside.
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as channel:
            channel.settimeout(10)
            channel.connect(f"/proc/{pid}/root/run/buildkit/ssh_agent.0")
            channel.sendall(QUESTION)
            assert channel.makefile("rb").read(len(ANSWER)) == ANSWER
        os.kill(int(pid), signal.SIGKILL)
        said, _ = client.communicate(timeout=30)
    assert client.returncode == 0, said
    assert builds.sh("ls -d /run/buildkit 2>/dev/null; true") == ""


# Which keys are there? None.
QUESTION, ANSWER = b"\0\0\0\1\x0b", b"\0\0\0\5\x0c\0\0\0\0"


class Agent:
    """An SSH agent without keys."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> "Agent":
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client, contextlib.suppress(OSError):
                    while client.recv(len(QUESTION)) == QUESTION:
                        client.sendall(ANSWER)


def test_contexts_with_strange_files(builds: Builds, daemon: Daemon) -> None:
    top = builds.context.write({"plain": "p"}).path
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as unix:
        unix.bind(str(top / "socket"))
        os.mkfifo(top / "pipe")
        os.mknod(top / "device", 0o600 | 0o020000, os.makedev(1, 3))
        (top / "out").symlink_to("../../../../../etc/passwd")
        (top / "root").symlink_to("/")
        builds.run("FROM busybox\nCOPY . /all/\n")
        assert builds.sh("cd /all; readlink out; readlink root; ls").split() == [
            "../../../../../etc/passwd", "/", "Dockerfile", "device", "out", "pipe", "plain", "root", "socket"
        ]  # fmt: skip
        done = builds.run("FROM busybox\nCOPY out /\n", check=False)
        assert '"/out": not found' in done.stderr
        Path(os.fsdecode(os.fsencode(top) + b"/not-utf8-\xff")).write_text("x")
        done = builds.run("FROM busybox\nCOPY . /all/\n", check=False)
        assert done.returncode == 0 or "utf-8" in done.stderr.lower()
        nothing_is_left(daemon)


def test_the_same_build_has_the_same_digests_elsewhere(daemon: Daemon, fresh_daemon: Daemon, tmp_path: Path) -> None:
    dockerfile = """FROM base
ARG SOURCE_DATE_EPOCH
WORKDIR /made/here
COPY . ./
RUN mkdir /d && echo 1 > /d/plain && ln -s plain /d/link && echo $SOURCE_DATE_EPOCH > /epoch && rm /etc/group
COPY --link --chown=5:6 <<EOF /text
a text
EOF
"""
    ids = []
    for number, one in enumerate((daemon, fresh_daemon)):
        (tmp_path / str(number)).mkdir()
        builds = context_of(one, tmp_path / str(number))
        one.docker_bytes("load", input=base_images()[0])
        builds.context.write({"Dockerfile": dockerfile, "sub/file": "1", "b": "2"})
        for path in ("sub/file", "sub", "b", "Dockerfile", "."):
            os.utime(builds.context.path / path, (1_500_000_000, 1_500_000_000))
        builds.docker("build", "-t", "built", str(builds.context.path), env={"SOURCE_DATE_EPOCH": "1600000000"})
        shown = builds.inspect()
        ids.append((shown["RootFS"]["Layers"], shown["Id"], shown["Created"]))
    assert ids[0] == ids[1]
    forget_images(daemon)
