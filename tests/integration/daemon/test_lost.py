"""Nothing that is found at a start keeps the daemon from starting: it is put aside, and reported."""

import fcntl
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until


def set_immutable(path: Path, value: bool) -> None:
    """Set the flag of `chattr +i`, a program that not every host has."""
    get_flags, set_flags, immutable = 0x80086601, 0x40086602, 0x10
    with path.open("rb") as file:
        (flags,) = struct.unpack("l", fcntl.ioctl(file, get_flags, bytes(8)))
        try:
            fcntl.ioctl(file, set_flags, struct.pack("l", flags | immutable if value else flags & ~immutable))
        except OSError as error:
            pytest.skip(f"this file system has no immutable files: {error}")


def test_what_cannot_be_deleted_at_a_start_is_put_aside_and_reported(daemon: Daemon):
    """A file that even root cannot delete, in a directory that belongs to no container."""
    stray = daemon.config.data_root / "containers" / ("e" * 64)
    daemon.stop()
    (stray / "diff").mkdir(parents=True)
    (stray / "diff" / "stuck").write_text("")
    set_immutable(stray / "diff" / "stuck", True)
    try:
        daemon.start()
        until(lambda: not stray.exists(), "the stray is out of the way")
        (aside,) = (daemon.config.data_root / "lost").iterdir()
        assert aside.name.startswith(f"containers-{'e' * 64}")
        assert f"was put aside as {aside}" in daemon.log()
        told = subprocess.run(
            [sys.executable, "-m", "husk", "doctor", "--data-root", str(daemon.config.data_root)],
            capture_output=True, text=True, cwd="/", env=daemon.program_environment,
        ).stdout  # fmt: skip
        assert "lost" in told and aside.name[:20] in told.replace("\n", "")
    finally:
        for stuck in daemon.config.data_root.rglob("stuck"):
            set_immutable(stuck, False)
