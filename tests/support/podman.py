"""Podman for tests that exchange images with it: its own storage below one directory, no service, nothing on the host
changed.

with Podman() as podman:
    podman("load", "-i", "saved-by-husk.tar")
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.waiting import until

# Where `scripts/setup --test` puts the program of Debian's package without installing it.
_PEERS = Path(__file__).resolve().parents[2] / ".venv/peers"
_PATH = f"{os.environ.get('PATH', '')}:{_PEERS}"
_ANYTHING = '{"default": [{"type": "insecureAcceptAnything"}]}'


class Podman:
    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="pm-", dir="/tmp"))
        policy = self.directory / ".config/containers/policy.json"
        policy.parent.mkdir(parents=True)
        policy.write_text(_ANYTHING)
        program = shutil.which("podman", path=_PATH)
        assert program is not None, "see `missing`"
        self._command = [program, "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
        for option in ("root", "runroot", "tmpdir"):
            self._command += [f"--{option}", str(self.directory / option)]

    @staticmethod
    def missing() -> str:
        """Return the reason why podman cannot run here; empty where it can."""
        if os.geteuid() != 0:
            return "needs root: it runs a real podman"
        found = shutil.which("podman", path=_PATH)
        return "" if found else "no podman on PATH or in .venv/peers (scripts/setup --test)"

    def __call__(self, *arguments: str, input: bytes | None = None) -> bytes:
        """Run a command; what it prints."""
        environment = {"PATH": _PATH, "HOME": str(self.directory), "LD_LIBRARY_PATH": str(_PEERS / "lib")}
        done = subprocess.run(
            [*self._command, *arguments], input=input, capture_output=True, env=environment, timeout=120
        )
        assert done.returncode == 0, f"podman {' '.join(arguments)}: {done.stderr.decode(errors='replace')}"
        return done.stdout

    @contextlib.contextmanager
    def service(self) -> Iterator[str]:
        """Its API on a socket for the length of a block; the address."""
        path = self.directory / "podman.sock"
        environment = {"PATH": _PATH, "HOME": str(self.directory), "LD_LIBRARY_PATH": str(_PEERS / "lib")}
        command = [*self._command, "system", "service", "-t", "0", f"unix://{path}"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        try:
            until(path.exists, "podman's socket")
            yield f"unix://{path}"
        finally:
            process.terminate()
            process.wait(30)

    def text(self, *arguments: str) -> str:
        return self(*arguments).decode().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with open("/proc/self/mounts") as mounts:
            below = [line.split()[1] for line in mounts if f" {self.directory}/" in line]
        for target in reversed(below):
            subprocess.run(["umount", "-l", target], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)
