"""Runs git on repositories of strangers: nothing of a repository is run, and nobody is asked for a password.

Hooks and templates are not there, filters and helpers are not configured, and the host's settings are not read.
Addresses of other kinds than those of the web, git and SSH are refused, also where a server or a submodule leads to
them. A server that says nothing for a while is given up.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping

from husk.builder.store.workers.git_view import PATH, TEMPORARY, WORK
from husk.storage.workers.parts import Access
from husk.text.terminals import visible
from husk.text.urls import split_url

PROTOCOLS = "http:https:git:ssh"
PATIENCE = 120.0
_LARGEST_OUTPUT = 8 << 20
_LARGEST_COMPLAINT = 2048
_KNOWN_HOSTS = f"{TEMPORARY}/known_hosts"
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.logAllRefUpdates": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "credential.helper": "",
    "gc.auto": "0",
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "60",
    "init.defaultBranch": "master",
    "init.templateDir": "",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
}


class GitFailed(Exception):
    """A failure of git, in its own words."""


class Git:
    """`directory` is where its own files are, `tree` where it puts those of a commit."""

    def __init__(
        self, environment: Mapping[str, str], directory: str = "", tree: str = "", patience: float = PATIENCE
    ) -> None:
        self._environment = environment
        self._places = [f"--git-dir={directory}"] if directory else []
        self._places += [f"--work-tree={tree}"] if tree else []
        self._tree = tree
        self._patience = patience

    def at(self, directory: str, tree: str) -> "Git":
        return Git(self._environment, directory, tree, self._patience)

    def run(self, *arguments: str) -> bytes:
        """Run git and return its output; GitFailed when it fails, says too much, or nothing is heard of it."""
        process = subprocess.Popen(
            ["git", *self._places, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
            cwd=self._tree or WORK,
            start_new_session=True,
        )
        try:
            output, complaint = _listen(process, self._patience)
            if process.wait(self._patience) != 0:
                raise GitFailed(complaint or f"git {arguments[0]} ended with {process.returncode}")
        except subprocess.TimeoutExpired:
            raise GitFailed(f"git {arguments[0]} did not end") from None
        finally:
            _end(process)
        return output


def _listen(process: "subprocess.Popen[bytes]", patience: float) -> tuple[bytes, str]:
    assert process.stdout
    assert process.stderr
    output, complaint = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, output)
        selector.register(process.stderr, selectors.EVENT_READ, complaint)
        while selector.get_map():
            ready = selector.select(patience)
            if not ready:
                raise GitFailed(f"nothing was heard of the server for {patience:g} seconds")
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                key.data.extend(data)
                if not data:
                    selector.unregister(key.fileobj)
            del complaint[: -4 * _LARGEST_COMPLAINT]
            if len(output) > _LARGEST_OUTPUT:
                raise GitFailed(f"the server said more than {_LARGEST_OUTPUT} bytes")
    return bytes(output), _told(bytes(complaint))


def _told(complaint: bytes) -> str:
    """Its last words, without what only tells how far it came; the server's are a stranger's."""
    lines = complaint.decode("utf-8", "replace").replace("\r", "\n").split("\n")
    return visible("\n".join(line for line in lines if line and "%" not in line)[-_LARGEST_COMPLAINT:].strip())


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The program and those that it has started and that did not leave its session."""
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        if process.returncode is None:
            process.wait()
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.001)
        except ChildProcessError:
            return


def environment(access: Access) -> dict[str, str]:
    """All that git, and what it runs, is told."""
    settings = dict(_SETTINGS)
    if access.header:
        settings[f"http.{access.scope or access.remote}.extraHeader"] = f"Authorization: {access.header}"
    told = {
        **access.environment,
        "PATH": PATH,
        "HOME": TEMPORARY,
        "TMPDIR": TEMPORARY,
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": PROTOCOLS,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        # A ref of a repository may not say that one object is another.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_SSH_COMMAND": " ".join(_ssh(access)),
        "GIT_TERMINAL_PROMPT": "0",
        # As settings of the environment they are not seen in any list of processes.
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (name, value) in enumerate(settings.items()):
        told[f"GIT_CONFIG_KEY_{number}"] = name
        told[f"GIT_CONFIG_VALUE_{number}"] = value
    if access.agent:
        told["SSH_AUTH_SOCK"] = f"{WORK}/{access.agent}"
    return told


def _ssh(access: Access) -> list[str]:
    known = _KNOWN_HOSTS if access.known_hosts else "/dev/null"
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": "15",
        "ServerAliveInterval": "15",
        "StrictHostKeyChecking": "yes" if access.known_hosts else "no",
        "UserKnownHostsFile": known,
        "LogLevel": "ERROR",
    }
    return ["ssh", "-F", "/dev/null", *(f"-o {name}={value}" for name, value in options.items())]


def write_known_hosts(access: Access) -> None:
    if access.known_hosts:
        with open(_KNOWN_HOSTS, "w") as file:
            file.write(access.known_hosts + "\n")


def without_password(text: str, remote: str) -> str:
    """A text of git's without what is secret in an address."""
    who, at, _ = split_url(remote).netloc.rpartition("@") if "://" in remote else ("", "", "")
    return text.replace(who + at, "xxxxx:xxxxx@") if at and ":" in who else text
