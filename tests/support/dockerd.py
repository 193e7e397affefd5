"""How tests get Docker's own daemon, to exchange images with: no network, its own directories, gone afterwards.

with Dockerd() as dockerd:
    dockerd.docker("load", "-i", "saved-by-husk.tar")
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

_DEADLINE = 60.0


class Dockerd:
    """A running dockerd; it starts and ends its containerd itself."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="dk-", dir="/tmp"))
        self.host = f"unix://{self.directory}/s"
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def available() -> bool:
        return os.geteuid() == 0 and shutil.which("dockerd") is not None and shutil.which("containerd") is not None

    def __enter__(self) -> Self:
        command = ["dockerd", "-H", self.host, "--data-root", f"{self.directory}/data"]
        command += ["--exec-root", f"{self.directory}/run", "--pidfile", f"{self.directory}/pid"]
        command += ["--bridge=none", "--iptables=false", "--ip6tables=false"]
        (self.directory / "daemon.json").write_text("{}")
        command += ["--config-file", str(self.directory / "daemon.json")]
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + _DEADLINE
        while self.docker("version", check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                text = (self.directory / "log").read_text(errors="replace")
                self.close()
                raise RuntimeError(f"dockerd did not start:\n{text}")
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._process is not None:
            containerd = self._containerd()
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                if containerd is not None:
                    os.kill(containerd, signal.SIGKILL)
            self._process = None
        for mount in sorted(self._mounts(), reverse=True):
            subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def docker(
        self, *arguments: str, check: bool = True, input: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "DOCKER_HOST": self.host, "DOCKER_CONFIG": f"{self.directory}/docker"}
        done = subprocess.run(["docker", *arguments], env=environment, input=input, capture_output=True, timeout=120)
        assert not check or done.returncode == 0, f"docker {' '.join(arguments)}: {done.stderr.decode()}"
        return done

    def _containerd(self) -> int | None:
        try:
            return int((self.directory / "run/containerd/containerd.pid").read_text())
        except (OSError, ValueError):
            return None

    def _mounts(self) -> list[str]:
        lines = Path("/proc/self/mounts").read_text().splitlines()
        return [point for line in lines if (point := line.split()[1]).startswith(str(self.directory))]
