"""Daemons that are elsewhere, for the `husk` command: over TLS, and by a context that docker's own client has made."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import Authority, Pair
from tests.support.daemon import Daemon
from tests.support.husk import at_terminal, husk
from tests.support.remote import address, tls_daemon


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def client(authority: Authority) -> Pair:
    return authority.issue("client")


@pytest.fixture(scope="module")
def module_daemon(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs real containers")
    with tls_daemon(tmp_path_factory.mktemp("tls"), authority) as daemon:
        yield daemon


def test_tls_by_the_environment(daemon: Daemon, client: Pair) -> None:
    more = {"HUSK_HOST": address(daemon), "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(client.directory)}
    line = ("run", "--rm", "-i", "busybox", "sh", "-c", "cat; exit 3")
    assert husk(daemon, *line, input="far\n", code=3, more=more).stdout == "far\n"
    husk(daemon, "run", "-d", "--name", "web", "busybox", "sleep", "1000", more=more)
    assert husk(daemon, "ps", "--format", "{{.Names}}", more=more).stdout == "web\n"
    completed = {"_HUSK_COMPLETE": "bash_complete", "COMP_WORDS": "husk stop ", "COMP_CWORD": "2"}
    assert husk(daemon, more={**more, **completed}).stdout == "plain,web\n"


def test_who_has_no_certificate_hears_why(daemon: Daemon, client: Pair, tmp_path: Path) -> None:
    verified = {"HUSK_HOST": address(daemon), "DOCKER_TLS_VERIFY": "1"}
    foreign = Authority(tmp_path).issue("client")
    for more in (
        {"HUSK_HOST": address(daemon)},
        {**verified, "DOCKER_CERT_PATH": f"{tmp_path}/none"},
        {**verified, "DOCKER_CERT_PATH": str(foreign.directory)},
    ):
        done = husk(daemon, "ps", code=1, more=more)
        assert done.stdout == "" and done.stderr.count("\n") == 1 and done.stderr.startswith("husk: ")


def test_a_context_that_docker_made(daemon: Daemon, client: Pair, tmp_path: Path) -> None:
    nothing_said = {"HUSK_HOST": "", "DOCKER_CONFIG": str(daemon.directory / "docker")}
    pair = f"ca={client.ca},cert={client.cert},key={client.key}"
    for name, endpoint in (("near", f"host={daemon.host}"), ("far", f"host={address(daemon)},{pair}")):
        daemon.docker("context", "create", name, "--docker", endpoint)
    husk(daemon, "run", "-d", "--name", "web", "busybox", "sleep", "1000")
    for name in ("near", "far"):
        assert husk(daemon, "--context", name, "ps", "--format", "{{.Names}}", more=nothing_said).stdout == "web\n"
        by_environment = {**nothing_said, "DOCKER_CONTEXT": name}
        assert husk(daemon, "exec", "web", "echo", "hi", more=by_environment).stdout == "hi\n"
    daemon.docker("context", "use", "far")
    assert husk(daemon, "ps", "--format", "{{.Names}}", more=nothing_said).stdout == "web\n"
    daemon.docker("context", "use", "default")
    done = husk(daemon, "--context", "other", "ps", code=1, more=nothing_said)
    assert "context 'other' does not exist" in done.stderr and done.stderr.count("\n") == 1
    daemon.docker("context", "rm", "near", "far")


def test_owners_go_along_as_with_dockers_cp(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.chown(tmp_path / "file", 1234, 1235)
    for user in ("0", "77:78"):
        daemon.docker("run", "-d", "--name", f"box{user[0]}", "--user", user, "busybox", "sleep", "1000")
        for flags in ((), ("-a",)):
            line = ("cp", *flags, f"{tmp_path}/file", f"box{user[0]}:/tmp/file")
            found = []
            for copy in (lambda line=line: husk(daemon, *line), lambda line=line: daemon.docker(*line)):
                copy()
                owner = daemon.docker("exec", f"box{user[0]}", "stat", "-c", "%u:%g", "/tmp/file").stdout
                found.append(owner)
                daemon.docker("exec", "--user", "0", f"box{user[0]}", "rm", "/tmp/file")
            assert found[0] == found[1], (user, flags)


def test_a_build_at_a_terminal_has_a_bar_of_its_steps(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM busybox\nRUN echo wor''ks\n")
    with at_terminal(daemon, "build", "--no-cache", "-t", "barred:1", str(tmp_path), columns=120) as terminal:
        terminal.expect(b"works")
        terminal.expect(b"2/2 steps")
        assert terminal.wait() == 0
    husk(daemon, "rmi", "barred:1")
