"""Commands to git, and the reading of its output."""

import sys

import pytest

from husk.builder.store.workers.git_program import Git, GitFailed, environment, without_password
from husk.storage.workers.parts import Access

REMOTE = "https://host.example/a.git"


def settings(told):
    numbers = range(int(told["GIT_CONFIG_COUNT"]))
    return {told[f"GIT_CONFIG_KEY_{number}"]: told[f"GIT_CONFIG_VALUE_{number}"] for number in numbers}


def test_nothing_of_the_host_or_the_repository_is_run():
    told = environment(Access(REMOTE))
    assert told["GIT_ALLOW_PROTOCOL"] == "http:https:git:ssh"
    assert told["GIT_TERMINAL_PROMPT"] == "0"
    assert (told["GIT_CONFIG_GLOBAL"], told["GIT_CONFIG_NOSYSTEM"]) == ("/dev/null", "1")
    assert settings(told)["core.hooksPath"] == "/dev/null"
    assert "SSH_AUTH_SOCK" not in told
    assert "StrictHostKeyChecking=no" in told["GIT_SSH_COMMAND"]


def test_a_header_is_for_its_repository_alone():
    told = settings(environment(Access(REMOTE, header="basic abc", scope=REMOTE)))
    assert told[f"http.{REMOTE}.extraHeader"] == "Authorization: basic abc"
    assert "http.extraHeader" not in told


def test_an_agent_and_hosts_that_are_known():
    told = environment(Access("git@host:a", agent="agent", known_hosts="host ssh-rsa x", environment={"no_proxy": "x"}))
    assert told["SSH_AUTH_SOCK"] == "/work/agent"
    assert "StrictHostKeyChecking=yes" in told["GIT_SSH_COMMAND"]
    assert told["no_proxy"] == "x"


@pytest.mark.parametrize(
    ("text", "remote", "shown"),
    [
        ("cannot reach https://me:pw@host/x", "https://me:pw@host/x", "cannot reach https://xxxxx:xxxxx@host/x"),
        ("git@host:x", "git@host:x", "git@host:x"),
        ("ssh://git@host/x", "ssh://git@host/x", "ssh://git@host/x"),
    ],
)
def test_passwords_are_not_told(text, remote, shown):
    assert without_password(text, remote) == shown


class Programs:
    """Puts a program of ours in git's place."""

    def __init__(self, directory):
        self._here = directory

    def run(self, code, patience=20.0):
        program = self._here / "git"
        program.write_text(f"#!{sys.executable}\n{code}\n")
        program.chmod(0o755)
        return Git({"PATH": str(self._here)}, tree=str(self._here), patience=patience).run("fetch")


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path)


def test_what_it_writes_and_what_it_complains_about(programs):
    assert programs.run("print('hello')") == b"hello\n"
    code = "import sys; sys.stderr.write('Receiving: 10%\\rReceiving: 20%\\nfatal: no\\n'); sys.exit(128)"
    with pytest.raises(GitFailed, match=r"^fatal: no$"):
        programs.run(code)


def test_a_server_that_says_nothing_is_given_up(programs):
    with pytest.raises(GitFailed, match=r"nothing was heard of the server for 0\.2 seconds"):
        programs.run("import time; time.sleep(60)", patience=0.2)


def test_a_server_that_says_too_much(programs):
    with pytest.raises(GitFailed, match="more than"):
        programs.run("while True: print('x' * 100000)")


def test_what_a_server_says_is_nothing_that_a_terminal_obeys(programs):
    code = r"import sys; sys.stderr.write('remote: \x1b]0;title\x07\nfatal: no\n'); sys.exit(128)"
    with pytest.raises(GitFailed) as caught:
        programs.run(code)
    assert str(caught.value) == "remote: \\x1b]0;title\\x07\nfatal: no"
