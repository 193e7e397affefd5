"""The program wireguard-go: found, missing, told from others."""

import errno
import shutil

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
