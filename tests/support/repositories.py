"""Repositories of git for tests, and a server on loopback that gives them away (`git daemon`)."""

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.free_ports import free_port
from tests.support.waiting import wait_until

_WHO = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in (
    ("NAME", "Test"), ("EMAIL", "test@example.com"), ("DATE", "2001-02-03T04:05:06Z"),
)}  # fmt: skip


class Repository:
    """A bare repository, `<name>.git`, with a tree to change it by."""

    def __init__(self, place: Path, name: str) -> None:
        self.bare = place / f"{name}.git"
        self.tree = place / f"{name}-tree"
        self.run("init", "--quiet", "--initial-branch=main", str(self.tree), here=place)
        self.run("init", "--quiet", "--bare", "--initial-branch=main", str(self.bare), here=place)

    def run(self, *arguments: str, here: Path | None = None) -> str:
        settings = ["-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false"]
        environment = {**os.environ, **_WHO, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *settings, *arguments], cwd=here or self.tree, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str], *, tag: str = "") -> str:
        """Change files, and have that where everybody sees it: the commit."""
        for name, text in files.items():
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.run("add", "--all")
        self.run("commit", "--quiet", "--allow-empty", "-m", "a change")
        if tag:
            self.run("tag", "-a", tag, "-m", tag)
        self.push()
        return self.run("rev-parse", "HEAD")

    def push(self) -> None:
        self.run("push", "--quiet", "--force", "--all", str(self.bare))
        self.run("push", "--quiet", "--force", "--tags", str(self.bare))
        self.run("update-server-info", here=self.bare)


@contextmanager
def git_daemon(place: Path) -> Iterator[str]:
    """Give all repositories of a directory away; the address."""
    port = free_port()
    process = subprocess.Popen(
        [
            "git",
            "daemon",
            f"--base-path={place}",
            "--export-all",
            "--reuseaddr",
            "--listen=127.0.0.1",
            f"--port={port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(lambda: _listens(port), "git daemon listens")
        yield f"git://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, 15)
        process.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
