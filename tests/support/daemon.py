"""A daemon for tests: a real `husk serve` process with a socket, directories and a bridge of its own.

    with Daemon() as daemon:
        assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\\n"

Several may run at once, beside any other engine. Its directory is directly below /tmp because socket paths are short.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from types import TracebackType

from husk.config import Config
from husk.kernel.trees import discard_tree
from tests.support.client import COMMAND_TIMEOUT, Answer, Client, CommandFailed
from tests.support.litter import Traces
from tests.support.server import Server

__all__ = ["COMMAND_TIMEOUT", "Answer", "CommandFailed", "Daemon"]

START_DEADLINE = 60.0
STOP_DEADLINE = 40.0
# Containers that are removed at once after a test.
_REMOVALS = 8
# The OCI runtime of all containers, where it is not to be what the daemon would choose.
RUNTIME = os.environ.get("HUSK_TEST_RUNTIME", "")

# How the watch on the loop (husk.aio.stalls) names what held it.
_STALL = b"the loop was held for "
SOURCES = Path(__file__).resolve().parents[2] / "src"


class Daemon(Server, Client):
    """One daemon of a test. Starting, killing and starting again keeps its data."""

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        choose_subnet: bool = False,
        program: Path | None = None,
        data_root: Path | None = None,
        exec_root: Path | None = None,
        wrapper: tuple[str, ...] = (),
    ) -> None:
        """`choose_subnet` lets it choose its subnet itself, as a daemon without `--bip` does. `program` is an installed
        `husk` to run; without it this tree's daemon runs, whatever is installed here. Roots of its own are removed by
        the caller. `wrapper` is a command that becomes the daemon, under other circumstances than this process's."""
        super().__init__(Path(tempfile.mkdtemp(prefix="hk-", dir="/tmp")))
        self.config = Config(
            hosts=(self.host,),
            data_root=data_root or self.directory / "data",
            exec_root=exec_root or self.directory / "run",
            bip="" if choose_subnet else unused_subnet(),
        )
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None
        self._program = [*wrapper, *([str(program)] if program else [sys.executable, "-m", "husk"])]
        sources = {} if program else {"PYTHONPATH": str(SOURCES)}
        self.program_environment = {**os.environ, **sources, **(environment or {})}
        self._own_program = program is not None
        self._told = 0
        self._traces = Traces(self.config, self.directory)

    # -- life ------------------------------------------------------------------------------------------------------

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = self.close()
        if left and error is None:
            raise AssertionError("the daemon left on the host, or did:\n  " + "\n  ".join(left))

    def start(self, *arguments: str) -> None:
        """Start it, and return when it answers. `arguments` come on top of those of the constructor."""
        assert self.process is None, "it runs already"
        command = [*self._program, "serve"]
        command += ["-H", self.host, "--data-root", str(self.config.data_root)]
        command += ["--exec-root", str(self.config.exec_root)]
        command += ["--bip", self.config.bip] if self.config.bip else []
        if not any(argument.startswith("--config-file") for argument in (*self.arguments, *arguments)):
            # Whatever this machine has in /etc is not part of the test.
            empty = self.directory / "daemon.json"
            empty.write_text("{}")
            command += ["--config-file", str(empty)]
            command += ["--default-runtime", RUNTIME] if RUNTIME else []
        if not any(argument.startswith("--log-level") for argument in (*self.arguments, *arguments)):
            command += ["--log-level", "debug"]
        command += ["--debug-stalls"] if self._watched else []
        command += [*self.arguments, *arguments]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.program_environment, cwd="/"
            )
        deadline = time.monotonic() + START_DEADLINE
        while not self.answers():
            if self.process.poll() is not None:
                status, self.process = self.process.returncode, None
                raise AssertionError(f"the daemon ended at its start with status {status}:\n{self.log()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"the daemon does not answer after {START_DEADLINE:g} seconds:\n{self.log()}")
            time.sleep(0.01)

    def stop(self, sig: int = signal.SIGTERM) -> int:
        """End it cleanly, leaving its containers; the exit status. Does nothing when it does not run."""
        if self.process is None:
            return 0
        self._traces.remember()
        process, self.process = self.process, None
        process.send_signal(sig)
        try:
            return process.wait(STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(
                f"the daemon did not end {STOP_DEADLINE:g} seconds after SIGTERM:\n{self.log()}"
            ) from None

    def kill9(self) -> None:
        """Crash: no warning, no clean-up."""
        assert self.process is not None, "it does not run"
        self._traces.remember()
        process, self.process = self.process, None
        process.kill()
        process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def reload(self) -> None:
        """Send SIGHUP."""
        assert self.process is not None, "it does not run"
        self.process.send_signal(signal.SIGHUP)

    def close(self) -> list[str]:
        """Remove all containers, end the daemon, clean up after it. What it should have cleaned itself is returned, and
        stalls that nobody has asked for."""
        try:
            # Also when there is no docker command.
            with contextlib.suppress(AssertionError, OSError, HTTPException):
                if self.process is None:
                    self.start()
                self.remove_containers()
            problems = []
            try:
                self.stop()
            except AssertionError as error:
                problems.append(str(error))
            return problems + self._traces.clean() + self.stalls()
        finally:
            discard_tree(self.directory)

    def remove_containers(self) -> None:
        """Back to no containers at all; images stay."""
        # After every test: the docker command would take ten times as long to find that there is nothing to do.
        listed = self.http("GET", "/containers/json?all=1")
        assert listed.status == 200, listed.body
        names = [container["Id"] for container in listed.json()]
        with ThreadPoolExecutor(_REMOVALS) as removals:
            list(removals.map(lambda name: self.http("DELETE", f"/containers/{name}?force=1&v=1"), names))

    def check_no_litter(self) -> None:
        """After `remove_containers`: no process, mount or cgroup of theirs is left."""
        left = self._traces.settle(self.pid)
        assert not left, "containers left on the host:\n  " + "\n  ".join(left)

    def check_no_stalls(self) -> None:
        """Nothing held the daemon's loop since they were asked for."""
        stalls = self.stalls()
        assert not stalls, "others had to wait:\n  " + "\n  ".join(stalls)

    def stalls(self) -> list[str]:
        """Return what held the daemon's loop for more than 100 ms of processor time since the last call.

        A test during which there may be some asks at its end, and says why; all others fail by them."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(self._told)
                text = log.read()
        except FileNotFoundError:
            return []
        self._told += len(text)
        return [line.decode(errors="replace") for line in text.splitlines() if _STALL in line]

    @property
    def _watched(self) -> bool:
        """A release that is older than this tree may know no watch."""
        return not self._own_program and str(SOURCES) in self.program_environment["PYTHONPATH"]

    # -- looking inside --------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        assert self.process is not None, "it does not run"
        return self.process.pid


def unused_subnet() -> str:
    """A bridge address out of 10.200.0.0/13 that no route of this host covers yet."""
    taken = subprocess.run(["ip", "-o", "route", "show"], capture_output=True, text=True, check=True).stdout
    while True:
        prefix = f"10.{random.randrange(200, 208)}.{random.randrange(256)}."
        if prefix not in taken:
            return f"{prefix}1/24"
