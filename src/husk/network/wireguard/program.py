"""WireGuard by the program wireguard-go, for kernels without their own: run, found again, told and asked.

It is started on an interface (TUN) that stays when it ends, in a session of its own, and is known by its arguments: a
daemon that ends leaves it running, and the next one finds it. When the interface is deleted it ends by itself.
"""

import contextlib
import errno
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from husk.errors import HuskError, SystemFault, Unavailable
from husk.kernel import process, tun
from husk.network.settings import WIREGUARD_SOCKETS
from husk.network.wireguard import uapi
from husk.network.wireguard.parties import DeviceChange, DeviceState

# How long it may take to answer, and to end, in seconds.
PATIENCE, GRACE = 10.0, 2.0
_LARGEST = 1 << 24


def find_program() -> str:
    found = shutil.which("wireguard-go", path=f"{os.environ.get('PATH', '')}:/usr/local/bin:/usr/bin")
    if found is None:
        raise Unavailable(
            f"encrypted networks need WireGuard, which {socket.gethostname()} does not have: load the kernel's module "
            "wireguard there, or install the program wireguard-go (Debian's package has that name)"
        )
    return found


def running(
    interface: str,
    given: Callable[[Collection[str]], list[int]] = process.given,
    arguments_of: Callable[[int], list[bytes]] = process.arguments_of,
) -> list[int]:
    """The processes that carry an interface. Blocks."""
    found = []
    for pid in given([interface]):
        program, *arguments = arguments_of(pid) or [b""]
        if program.endswith(b"wireguard-go") and arguments == [b"-f", interface.encode()]:
            found.append(pid)
    return found


def _has(interface: str) -> bool:
    return interface in (name for _, name in socket.if_nameindex())


def socket_of(interface: str, sockets: Path = WIREGUARD_SOCKETS) -> Path:
    """Return the path of the program's socket; a program that was killed leaves it there."""
    return sockets / f"{interface}.sock"


def _spawn(arguments: list[str]) -> process.Child:
    return process.spawn(arguments, env={"LOG_LEVEL": "error"})


class ProgramHost(NamedTuple):
    """The host that the program runs on: where it is and where its sockets are, how an interface of the kind TUN is
    made, whether there is one, and the processes that carry it."""

    sockets: Path = WIREGUARD_SOCKETS
    find_program: Callable[[], str] = find_program
    make_interface: Callable[[str], None] = tun.make
    has_interface: Callable[[str], bool] = _has
    running: Callable[[str], list[int]] = running
    spawn: Callable[[list[str]], process.Child] = _spawn
    pidfd_open: Callable[[int], int] = process.pidfd_open


HOST = ProgramHost()


class Program:
    """`Device` of one interface, whose name no other daemon of this machine has."""

    def __init__(self, interface: str, host: ProgramHost = HOST) -> None:
        self._host = host
        self._interface = interface
        self._child: process.Child | None = None

    @property
    def pidfd(self) -> int:
        return self._child.pidfd if self._child is not None else -1

    @property
    def _socket(self) -> Path:
        return socket_of(self._interface, self._host.sockets)

    def start(self) -> None:
        """Let it run, be it one that a former daemon left; returns when it answers."""
        self._child = self._find() or self._spawn()
        try:
            self._await_answer()
        except BaseException:
            self.end()
            raise

    def _await_answer(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.read()
                return
            except OSError as error:
                if process.has_ended(self.pidfd) or time.monotonic() > deadline:
                    raise SystemFault(f"wireguard-go does not work here: {error}") from error
            time.sleep(0.01)

    def _find(self) -> process.Child | None:
        if not self._host.has_interface(self._interface):
            return None
        for pid in self._host.running(self._interface):
            with contextlib.suppress(ProcessLookupError):
                child = process.Child(pid, self._host.pidfd_open(pid))
                if self._answers():
                    return child
                child.close()
        self._kill()
        return None

    def _answers(self) -> bool:
        try:
            self.read()
        except (OSError, HuskError, ValueError):  # what it says may be nothing that we understand
            return False
        return True

    def _spawn(self) -> process.Child:
        program = self._host.find_program()
        try:
            self._make()
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
                raise Unavailable(
                    f"encrypted networks need interfaces of the kind TUN, which {socket.gethostname()} does not have: "
                    "load the kernel's module tun there"
                ) from error
            raise
        return self._host.spawn([program, "-f", self._interface])

    def _make(self) -> None:
        """One that was killed is gone from the list of processes a moment before it lets go of the interface."""
        deadline = time.monotonic() + GRACE
        while True:
            try:
                return self._host.make_interface(self._interface)
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.005)

    def read(self) -> DeviceState:
        return uapi.parse(self._ask(uapi.GET))

    def write(self, change: DeviceChange) -> None:
        if number := uapi.failure(self._ask(uapi.request(change))):
            raise OSError(number, f"wireguard-go: {os.strerror(number)}")

    def _ask(self, message: bytes) -> bytes:
        """The answer ends with an empty line."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as channel:
            channel.settimeout(PATIENCE)
            channel.connect(str(self._socket))
            channel.sendall(message)
            answer = b""
            while not answer.endswith(b"\n\n") and len(answer) < _LARGEST:
                if not (part := channel.recv(1 << 16)):
                    raise ConnectionError(errno.ECONNRESET, "wireguard-go ended amid its answer")
                answer += part
            return answer

    def let_go(self) -> None:
        if self._child is not None:
            process.reap(self._child.pidfd)  # it may have ended
            self._child.close()
            self._child = None

    def end(self) -> None:
        if self._child is not None:
            for sent in (signal.SIGTERM, signal.SIGKILL):
                process.send_signal(self._child.pidfd, sent)
                deadline = time.monotonic() + GRACE
                while not process.has_ended(self._child.pidfd) and time.monotonic() < deadline:
                    time.sleep(0.005)
            self.let_go()
        self._kill()
        self._socket.unlink(missing_ok=True)

    def _kill(self) -> None:
        """Kill the programs that a former daemon started and nobody watches, and wait for their end."""
        deadline = time.monotonic() + GRACE
        while (found := self._host.running(self._interface)) and time.monotonic() < deadline:
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
