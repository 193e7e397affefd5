"""The API over TLS: docker's clients do all that they do on the local socket, and nobody else gets in."""

import contextlib
import hashlib
import io
import os
import random
import signal
import socket
import ssl
import subprocess
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import Authority, Pair
from tests.support.compose import Project, require_compose
from tests.support.daemon import Daemon
from tests.support.remote import LOOPBACK, Remote, address, tls_daemon
from tests.support.terminal import Terminal
from tests.support.waiting import until


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def module_daemon(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs real containers")
    with tls_daemon(tmp_path_factory.mktemp("tls"), authority) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def client(authority: Authority) -> Pair:
    return authority.issue("client")


@pytest.fixture
def remote(daemon: Daemon, client: Pair) -> Remote:
    return Remote(daemon, client)


# --- the docker command


def test_the_end_of_input_is_heard_and_output_goes_on(remote: Remote) -> None:
    done = remote.docker("run", "--rm", "-i", "busybox", "sh", "-c", "sort; sleep 0.2; echo later", input="b\na\n")
    assert done.stdout == "a\nb\nlater\n"


def test_twenty_megabytes_through_cat(remote: Remote) -> None:
    data = random.Random(1).randbytes(20_000_000)
    done = remote.docker_bytes("run", "--rm", "-i", "busybox", "cat", input=data)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()


def test_exec_with_input_that_ends(remote: Remote) -> None:
    remote.docker("run", "-d", "--name", "web", "busybox", "sleep", "1000")
    done = remote.docker("exec", "-i", "web", "sh", "-c", "cat; echo done >&2; exit 7", input="in\n", check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("in\n", "done\n", 7)


def test_a_terminal_is_attached(remote: Remote) -> None:
    with Terminal(["docker", "run", "--rm", "-it", "busybox", "sh"], remote.environment) as terminal:
        terminal.expect(b"# ")
        terminal.type(b"echo $((6*7))\n")
        terminal.expect(b"42")
        terminal.type(b"exit 3\n")
        assert terminal.wait() == 3


def test_attach_to_what_runs(remote: Remote) -> None:
    remote.docker("run", "-d", "-i", "--name", "echo", "busybox", "cat")
    with remote.docker_process("attach", "echo") as attached:
        assert attached.stdin is not None and attached.stdout is not None
        attached.stdin.write(b"hello\n")
        attached.stdin.flush()
        assert attached.stdout.readline() == b"hello\n"
        remote.docker("kill", "echo")
        assert attached.wait(20) == 137


def test_logs_are_followed_until_the_end(remote: Remote) -> None:
    remote.docker(
        "run", "-d", "--name", "talker", "busybox", "sh", "-c", "echo one; read x < /dev/null; sleep 0.3; echo two"
    )
    assert remote.docker("logs", "-f", "talker").stdout == "one\ntwo\n"


def test_a_follower_that_leaves_is_noticed(daemon: Daemon, remote: Remote) -> None:
    remote.docker("run", "-d", "--name", "quiet", "busybox", "sh", "-c", "echo up; sleep 1000")
    follower = remote.docker_process("logs", "-f", "quiet")
    assert follower.stdout is not None and follower.stdout.readline() == b"up\n"
    followed = _connections(daemon)
    follower.send_signal(signal.SIGKILL)
    follower.communicate()
    until(lambda: _connections(daemon) < followed, "the end of the follower's connection")


def _connections(daemon: Daemon) -> int:
    """Return how many sockets the daemon holds."""
    links = Path(f"/proc/{daemon.pid}/fd")
    targets = []
    for link in links.iterdir():
        try:
            targets.append(os.readlink(link))
        except FileNotFoundError:
            continue
    return sum(target.startswith("socket:") for target in targets)


def test_files_are_copied_in_and_out(remote: Remote, tmp_path: Path) -> None:
    remote.docker("run", "-d", "--name", "files", "busybox", "sleep", "1000")
    data = random.Random(2).randbytes(8_000_000)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/large").write_bytes(data)
    (tmp_path / "tree/small").write_text("small")
    remote.docker("cp", str(tmp_path / "tree"), "files:/tmp/tree")
    summed = remote.docker("exec", "files", "sha256sum", "/tmp/tree/large").stdout.split()[0]
    assert summed == hashlib.sha256(data).hexdigest()
    remote.docker("cp", "files:/tmp/tree", str(tmp_path / "back"))
    assert (tmp_path / "back/large").read_bytes() == data
    assert (tmp_path / "back/small").read_text() == "small"


def test_images_are_saved_and_loaded(remote: Remote, tmp_path: Path) -> None:
    archive = tmp_path / "busybox.tar"
    remote.docker("save", "-o", str(archive), "busybox")
    assert "Loaded image: busybox:latest" in remote.docker("load", "-i", str(archive)).stdout


def test_the_command_line_takes_the_certificates_itself(daemon: Daemon, remote: Remote) -> None:
    plain = daemon.docker("--host", remote.host, "--tlsverify", *remote.pair.flags, "version", "-f", "{{.Server.Os}}")
    assert plain.stdout == "linux\n"


# --- other clients


def test_the_python_sdk(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)  # requests prefers them to the certificate that it is told
    with contextlib.closing(remote.sdk()) as sdk:
        assert sdk.containers.run("busybox", ["echo", "hi"], remove=True) == b"hi\n"
        container = sdk.containers.run(
            "busybox", ["sh", "-c", "cat > /tmp/got; sleep 1000"], detach=True, stdin_open=True
        )
        assert container.exec_run(["echo", "in"]).output == b"in\n"
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            entry = tarfile.TarInfo("file")
            entry.size = 3
            tar.addfile(entry, io.BytesIO(b"abc"))
        assert container.put_archive("/tmp", packed.getvalue())
        assert container.exec_run(["cat", "/tmp/file"]).output == b"abc"
        assert b"".join(container.get_archive("/tmp/file")[0]).find(b"abc") > 0


def test_compose(daemon: Daemon, remote: Remote, tmp_path: Path) -> None:
    require_compose()
    project = _project(daemon, remote, tmp_path)
    try:
        project("up", "-d", "--wait")
        assert project.services()["web-1"]["State"] == "running"
        assert project("exec", "-T", "web", "echo", "inside").stdout == "inside\n"
        assert "hello" in project("logs", "web").stdout
    finally:
        project.close()


def _project(daemon: Daemon, remote: Remote, tmp_path: Path) -> Project:
    directory = tmp_path / "shop"
    directory.mkdir()
    project = Project(daemon, directory)
    project.variables = {
        name: remote.environment[name] for name in ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
    }
    project.write(
        {"services": {"web": {"image": "busybox", "init": True, "command": "sh -c 'echo hello; sleep 1000'"}}}
    )
    return project


# --- who is not let in


def refused(daemon: Daemon, pair: Pair) -> str:
    """Return the words of the docker client when its certificate is not taken."""
    done = Remote(daemon, pair).docker("version", "-f", "{{.Server.Os}}", check=False)
    assert done.returncode != 0 and "linux" not in done.stdout
    return done.stderr


def test_a_certificate_of_another_authority_is_refused(daemon: Daemon, client: Pair, tmp_path: Path) -> None:
    wrong = Authority(tmp_path, "ca").issue("wrong")
    (wrong.directory / "ca.pem").write_bytes(Path(client.ca).read_bytes())
    assert "tls" in refused(daemon, wrong)


def test_an_expired_certificate_is_refused(daemon: Daemon, authority: Authority) -> None:
    assert "tls: expired certificate" in refused(daemon, authority.issue("expired", expired=True))


def test_a_servers_certificate_is_no_clients(daemon: Daemon, authority: Authority) -> None:
    assert "tls" in refused(daemon, authority.issue("another-server", addresses=[LOOPBACK]))


def test_without_a_certificate_nothing_is_answered(daemon: Daemon, client: Pair) -> None:
    context = ssl.create_default_context(cafile=client.ca)
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        _ask(daemon, context)


def test_without_tls_nothing_is_answered(daemon: Daemon, client: Pair) -> None:
    with socket.create_connection(_endpoint(daemon), timeout=20) as channel:
        channel.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP/1.1 200" not in _all(channel)


def test_old_versions_of_tls_are_refused(daemon: Daemon, client: Pair) -> None:
    context = ssl.create_default_context(cafile=client.ca)
    context.load_cert_chain(client.cert, client.key)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        _ask(daemon, context)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert b"200 OK" in _ask(daemon, context)


def test_a_client_that_never_shakes_hands_keeps_nobody_out(daemon: Daemon, remote: Remote) -> None:
    silent = [socket.create_connection(_endpoint(daemon), timeout=20) for _ in range(100)]
    try:
        assert remote.docker("version", "-f", "{{.Server.Os}}").stdout == "linux\n"
    finally:
        for channel in silent:
            channel.close()


def _endpoint(daemon: Daemon) -> tuple[str, int]:
    host, _, port = address(daemon).removeprefix("tcp://").rpartition(":")
    return host, int(port)


def _ask(daemon: Daemon, context: ssl.SSLContext) -> bytes:
    with (
        socket.create_connection(_endpoint(daemon), timeout=20) as channel,
        context.wrap_socket(channel, server_hostname=LOOPBACK) as secured,
    ):
        secured.sendall(b"GET /_ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return _all(secured)


def _all(channel: socket.socket) -> bytes:
    received = b""
    try:
        while data := channel.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


# --- how it starts


def serve(*arguments: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    program = Path(__file__).parents[3] / ".venv/bin/husk"
    own = ["--data-root", str(tmp_path / "data"), "--exec-root", str(tmp_path / "run"), "--validate"]
    return subprocess.run([program, "serve", *own, *arguments], capture_output=True, text=True, timeout=60)


def test_an_open_port_without_tlsverify_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    done = serve("-H", "tcp://0.0.0.0:0", tmp_path=tmp_path)
    assert done.returncode == 1
    assert "tcp://0.0.0.0:0 without --tlsverify would make everybody root" in done.stderr
    assert "say --tls=false" in done.stderr
    assert serve("-H", "tcp://0.0.0.0:0", "--tls=false", tmp_path=tmp_path).stderr == "configuration OK\n"
    assert serve("-H", "tcp://127.0.0.1:0", tmp_path=tmp_path).stderr == "configuration OK\n"


def test_a_missing_or_foreign_key_is_told_at_the_start(authority: Authority, tmp_path: Path) -> None:
    one, other = authority.issue("one", addresses=[LOOPBACK]), authority.issue("other", addresses=[LOOPBACK])
    host = ("-H", f"tcp://{LOOPBACK}:0", "--tlsverify")
    mixed = serve(*host, "--tlscacert", one.ca, "--tlscert", one.cert, "--tlskey", other.key, tmp_path=tmp_path)
    assert mixed.returncode == 1 and "could not load X509 key pair" in mixed.stderr
    absent = serve(*host, "--tlscacert", "/absent", "--tlscert", one.cert, "--tlskey", one.key, tmp_path=tmp_path)
    assert absent.returncode == 1 and "could not read CA certificate '/absent'" in absent.stderr


def test_tls_without_client_certificates_is_told_by_info(authority: Authority, tmp_path: Path) -> None:
    server = authority.issue("alone", addresses=[LOOPBACK])
    with Daemon("-H", f"tcp://{LOOPBACK}:0", "--tlsverify=false", *server.flags) as daemon:
        assert b"200 OK" in _ask(daemon, ssl.create_default_context(cafile=server.ca))
        told = daemon.http("GET", "/info").json()["Warnings"]
        assert any("https://" in warning and "without TLS client verification" in warning for warning in told)


def test_the_usual_certificates_are_those_in_the_home_directory(authority: Authority, tmp_path: Path) -> None:
    server = authority.issue("usual", addresses=[LOOPBACK])
    client = authority.issue("usual-client")
    (tmp_path / ".docker").symlink_to(server.directory)
    settings = tmp_path / "daemon.json"
    settings.write_text('{"tlsverify": true}')
    environment = {"HOME": str(tmp_path)}
    with Daemon("-H", f"tcp://{LOOPBACK}:0", "--config-file", str(settings), environment=environment) as daemon:
        assert Remote(daemon, client).docker("version", "-f", "{{.Server.Os}}").stdout == "linux\n"
