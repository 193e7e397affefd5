"""The program wireguard-go: found, missing, told from others."""

import contextlib
import errno
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.errors import Unavailable
from husk.kernel import process
from husk.network.wireguard import program
from husk.network.wireguard.program import ProgramHost


def test_who_has_none_hears_what_to_do(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(Unavailable, match="install the program wireguard-go"):
        program.find_program()


class Machine:
    """A machine whose interface some processes may carry, and what is made of it."""

    def __init__(self, sockets: Path) -> None:
        self.sockets = sockets
        # What making the interface fails with, from the last to the first.
        self.refusals: list[OSError] = []
        self.carried_by: list[int] = []
        self.child = process.Child(3, -1)
        self.started: list[list[str]] = []

    @property
    def host(self) -> ProgramHost:
        return ProgramHost(
            sockets=self.sockets,
            find_program=lambda: "wireguard-go",
            make_interface=self._make,
            has_interface=lambda _: bool(self.carried_by),
            running=self._running,
            spawn=self._spawn,
        )

    def _make(self, name: str) -> None:
        if self.refusals:
            raise self.refusals.pop()

    def _running(self, interface: str) -> list[int]:
        """Those that are killed are gone with the next look."""
        found, self.carried_by = self.carried_by, []
        return found

    def _spawn(self, arguments: list[str]) -> process.Child:
        self.started.append(arguments)
        return self.child


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def answering(machine: Machine) -> Iterator[list[bytes]]:
    """The answer of a program at its socket, whatever it is asked."""
    answers = [b"errno=0\n\n"]
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(program.socket_of("wg-none", machine.sockets)))
        door.listen()

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with door.accept()[0] as channel:
                        channel.recv(4096)
                        channel.sendall(answers[0])

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield answers
        door.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def living() -> process.Child:
    return process.spawn(["sleep", "60"], env={"PATH": os.environ["PATH"]})


def assert_ended(child: process.Child) -> None:
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(child.pidfd)


def test_a_kernel_without_tun_is_told_of(machine: Machine) -> None:
    machine.refusals = [FileNotFoundError(2, "no such file")]
    with pytest.raises(Unavailable, match="load the kernel's module tun"):
        program.Program("wg-none", machine.host).start()


def test_an_interface_that_a_killed_one_still_holds_is_waited_for(machine: Machine, answering: list[bytes]) -> None:
    machine.refusals = [OSError(errno.EBUSY, "busy"), OSError(errno.EBUSY, "busy")]
    machine.child = living()
    made = program.Program("wg-none", machine.host)
    made.start()
    assert machine.started == [["wireguard-go", "-f", "wg-none"]] and not machine.refusals
    made.end()
    assert_ended(machine.child)


def test_one_that_says_what_nobody_understands_is_let_go(machine: Machine, answering: list[bytes]) -> None:
    reading, writing = os.pipe()
    os.close(writing)
    answering[0] = b"listen_port=what?\n\n"
    machine.carried_by = [1 << 30]
    machine.refusals = [PermissionError(errno.EPERM, "another one is to be started")]
    with pytest.raises(PermissionError, match="another one"):
        program.Program("wg-none", machine.host._replace(pidfd_open=lambda _: reading)).start()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reading)


def test_a_start_that_fails_leaves_no_process(machine: Machine, answering: list[bytes]) -> None:
    answering[0] = b"listen_port=what?\n\n"
    machine.child = living()
    with pytest.raises(ValueError, match="what"):
        program.Program("wg-none", machine.host).start()
    assert_ended(machine.child)


def test_it_is_known_by_its_arguments() -> None:
    started = {
        1: [b"/usr/bin/wireguard-go", b"-f", b"wg-husk"],
        2: [b"wg", b"show", b"wg-husk"],
        3: [b"ip", b"link", b"delete", b"wg-husk"],
        4: [],
    }
    assert program.running("wg-husk", lambda arguments: list(started), started.__getitem__) == [1]
