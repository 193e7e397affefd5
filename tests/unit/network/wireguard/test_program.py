"""The program wireguard-go: found, missing, told from others."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from husk.errors import Unavailable
from husk.kernel import process, tun
from husk.network.wireguard import program


def test_who_has_none_hears_what_to_do(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(Unavailable, match="install the program wireguard-go"):
        program.find_program()


def test_a_kernel_without_tun_is_told_of(monkeypatch):
    def missing(name: str) -> None:
        raise FileNotFoundError(2, "no such file")

    monkeypatch.setattr(program, "find_program", lambda: "wireguard-go")
    monkeypatch.setattr(tun, "make", missing)
    with pytest.raises(Unavailable, match="load the kernel's module tun"):
        program.Program("wg-none").start()


def test_an_interface_that_a_killed_one_still_holds_is_waited_for(monkeypatch):
    tries = [OSError(errno.EBUSY, "busy"), OSError(errno.EBUSY, "busy")]

    def busy(name: str) -> None:
        if tries:
            raise tries.pop()

    monkeypatch.setattr(program, "find_program", lambda: "wireguard-go")
    monkeypatch.setattr(tun, "make", busy)
    monkeypatch.setattr(process, "spawn", lambda arguments, env: process.Child(len(arguments), -1))
    assert program.Program("wg-none")._spawn().pid == 3 and not tries


def test_one_that_says_what_nobody_understands_is_let_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(writing)

    def read(_: object) -> None:
        raise ValueError("what?")

    given = [[1 << 30], []]
    monkeypatch.setattr(program, "_SOCKETS", tmp_path)
    monkeypatch.setattr(program, "_has", lambda _: True)
    monkeypatch.setattr(program, "running", lambda _: given.pop(0) if given else [])
    monkeypatch.setattr(process, "pidfd_open", lambda _: reading)
    monkeypatch.setattr(program.Program, "read", read)
    assert program.Program("wg-none")._find() is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reading)


def test_a_start_that_fails_leaves_no_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def read(_: object) -> None:
        raise ValueError("what?")

    child = process.spawn(["sleep", "60"], env={"PATH": os.environ["PATH"]})
    monkeypatch.setattr(program, "_SOCKETS", tmp_path)
    monkeypatch.setattr(program.Program, "_find", lambda _: child)
    monkeypatch.setattr(program.Program, "read", read)
    with pytest.raises(ValueError, match="what"):
        program.Program("wg-none").start()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(child.pidfd)


def test_it_is_known_by_its_arguments(monkeypatch):
    started = {
        1: [b"/usr/bin/wireguard-go", b"-f", b"wg-husk"],
        2: [b"wg", b"show", b"wg-husk"],
        3: [b"ip", b"link", b"delete", b"wg-husk"],
        4: [],
    }
    monkeypatch.setattr(process, "given", lambda arguments: list(started))
    monkeypatch.setattr(process, "arguments_of", started.__getitem__)
    assert program.running("wg-husk") == [1]
