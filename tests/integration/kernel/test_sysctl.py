"""Settings in /proc, and in a file system of one's own that goes with what it remembers."""

import ctypes
import os
from pathlib import Path

import pytest

from husk.kernel import namespaces, sysctl

SETTING = "net/ipv4/ip_unprivileged_port_start"


def test_a_file_system_of_ones_own_has_the_settings_of_the_thread_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "netns"
    before, open_files = sysctl.read(SETTING), len(os.listdir("/proc/self/fd"))

    def change(_: int) -> str:
        with sysctl.fresh() as root:
            assert root is not None
            sysctl.write(SETTING, "77", root)
            with pytest.raises(FileNotFoundError):
                sysctl.write("net/ipv4/no_such_setting", "1", root)
            sysctl.try_write("net/ipv4/no_such_setting", "1", root)
        return sysctl.read(SETTING)

    try:
        assert namespaces.create(path, change) == "77"
    finally:
        namespaces.remove(path)
    assert sysctl.read(SETTING) == before
    assert len(os.listdir("/proc/self/fd")) == open_files


def test_where_it_cannot_be_had_there_is_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refuses:
        def syscall(self, *_: object) -> int:
            ctypes.set_errno(1)
            return -1

    monkeypatch.setattr(sysctl, "_libc", Refuses())
    with sysctl.fresh() as root:
        assert root is None
        sysctl.write(SETTING, sysctl.read(SETTING), root)
