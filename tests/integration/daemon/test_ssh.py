"""`docker -H ssh://…`: the docker command on the other side passes the bytes on (`docker system dial-stdio`).

`ssh` is a program of the test that runs here what it is asked to run there: everything but the way between is real.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.support.daemon import Daemon

_SSH = """#!{python}
import os, sys
words = sys.argv[1:]
with open({asked!r}, "a") as asked:
    print(*words, file=asked)
# Behind the host; some clients give the command as one word, for the shell over there.
command = " ".join(words[words.index("far.example") + 1:]).split()
os.environ["DOCKER_HOST"] = {host!r}
os.execvp(command[0], command)
"""


class Afar:
    def __init__(self, daemon: Daemon, directory: Path) -> None:
        self.asked = directory / "asked"
        program = directory / "ssh"
        program.write_text(_SSH.format(python=sys.executable, asked=str(self.asked), host=daemon.host))
        program.chmod(0o755)
        self._daemon = daemon
        daemon.extra_environment = {
            "DOCKER_HOST": "ssh://someone@far.example",
            "PATH": f"{directory}:{os.environ['PATH']}",
        }

    def docker(self, *arguments: str, **options: object) -> str:
        return self._daemon.docker(*arguments, **options).stdout  # type: ignore[arg-type]


@pytest.fixture
def afar(daemon: Daemon, tmp_path: Path):
    yield Afar(daemon, tmp_path)
    daemon.extra_environment = {}


def test_the_docker_command_over_ssh(afar: Afar) -> None:
    assert afar.docker("version", "-f", "{{.Server.Os}}") == "linux\n"
    asked = afar.asked.read_text()
    assert "far.example" in asked and "docker system dial-stdio" in asked


def test_the_end_of_input_is_heard_and_output_goes_on(afar: Afar) -> None:
    script = "sort; sleep 0.2; echo later"
    assert afar.docker("run", "--rm", "-i", "busybox", "sh", "-c", script, input="b\na\n") == "a\nb\nlater\n"


def test_exec_logs_and_copies(afar: Afar, tmp_path: Path) -> None:
    afar.docker("run", "-d", "--name", "web", "busybox", "sh", "-c", "echo up; sleep 1000")
    assert afar.docker("exec", "-i", "web", "cat", input="in") == "in"
    assert afar.docker("logs", "web") == "up\n"
    (tmp_path / "file").write_bytes(bytes(3_000_000))
    afar.docker("cp", str(tmp_path / "file"), "web:/tmp/file")
    afar.docker("cp", "web:/tmp/file", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == bytes(3_000_000)
