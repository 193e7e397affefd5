"""Commands of nftables on a double of the library: what fails is told, and its descriptors are its own."""

import ctypes
import gc
import os
from typing import Any

import pytest

from husk.errors import SystemFault
from husk.kernel import nftables as module
from husk.kernel.nftables import Nftables


class FakeLibrary:
    """libnftables as far as it is called; each function takes its types like one of ctypes."""

    def __init__(self) -> None:
        self.ran: list[bytes] = []
        self.contexts = 0
        self.fails = 0
        self.complaint = b""
        self.raises: Exception | None = None
        self.descriptors: set[str] = set()
        self.no_context = False

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            own = type(self).__dict__.get(f"_{name}")
            return own(self, *arguments) if own is not None else None

        self.__dict__[name] = call
        return call

    def _nft_ctx_new(self, flags: int) -> int:
        self.contexts += not self.no_context
        return 0 if self.no_context else 1

    def _nft_ctx_free(self, context: int) -> None:
        self.contexts -= 1

    def _nft_run_cmd_from_buffer(self, context: int, commands: bytes) -> int:
        if self.raises is not None:
            raise self.raises
        self.ran.append(commands)
        self.descriptors = set(os.listdir("/proc/thread-self/fd"))
        return self.fails

    def _nft_ctx_get_output_buffer(self, context: int) -> bytes:
        return b"table ip x"

    def _nft_ctx_get_error_buffer(self, context: int) -> bytes:
        return self.complaint


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    made = FakeLibrary()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: made)
    return made


def test_commands_are_one_transaction_and_what_they_print_comes_back(library: FakeLibrary) -> None:
    assert Nftables().run("add table ip x\nlist ruleset") == "table ip x"
    assert library.ran == [b"add table ip x\nlist ruleset"] and library.contexts == 0


def test_the_library_sees_none_of_our_descriptors(library: FakeLibrary) -> None:
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
    try:
        Nftables().run("x")
        assert {str(descriptor) for descriptor in held}.isdisjoint(library.descriptors)
        assert all(os.fstat(descriptor) for descriptor in held), "ours are still open"
    finally:
        for descriptor in held:
            os.close(descriptor)


def test_what_the_library_complains_about_is_told(library: FakeLibrary) -> None:
    library.fails, library.complaint = 1, b"Error: syntax error \xff\n"
    with pytest.raises(SystemFault, match="nftables: Error: syntax error \ufffd"):
        Nftables().run("nonsense")
    assert library.contexts == 0


@pytest.mark.parametrize("collecting", [True, False])
def test_a_library_that_cannot_be_called_leaves_all_as_it_was(library: FakeLibrary, collecting: bool) -> None:
    before = gc.isenabled()
    try:
        gc.enable() if collecting else gc.disable()
        library.no_context = True
        with pytest.raises(SystemFault, match="cannot be initialized"):
            Nftables().run("x")
        assert gc.isenabled() is collecting
    finally:
        gc.enable() if before else gc.disable()


def test_a_kernel_that_shares_all_descriptors(library: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        @staticmethod
        def syscall(*_: int) -> int:
            ctypes.set_errno(38)
            return -1

    monkeypatch.setattr(module, "_libc", Refusing)
    with pytest.raises(SystemFault, match="a thread cannot have descriptors of its own: Function not implemented"):
        Nftables().run("x")
    assert library.ran == []


def test_a_host_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError("no such file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(SystemFault, match=r"libnftables\.so\.1 cannot be loaded.*husk doctor --fix"):
        Nftables()


def test_the_programs_own_switch_of_the_collector_is_left_alone():
    """A host program may turn it off and on, or set thresholds, in another thread while rules are written."""

    def meanwhile(act):
        def work() -> tuple[int, bytes, bytes]:
            seen.append((gc.isenabled(), gc.get_threshold()[0]))
            act()
            return 0, b"", b""

        return work

    seen: list[tuple[bool, int]] = []
    before = gc.get_threshold()
    gc.enable()  # whatever another test has left
    try:
        module._apart(meanwhile(gc.disable))
        assert not gc.isenabled()
        module._apart(meanwhile(gc.enable))
        assert gc.isenabled()
        assert gc.get_threshold() == before
        assert seen == [(True, 0), (False, 0)]  # nothing is collected by itself, whatever the switch says
        module._apart(meanwhile(lambda: gc.set_threshold(5, 6, 7)))
        assert gc.get_threshold() == (5, 6, 7)
    finally:
        gc.enable()
        gc.set_threshold(*before)
