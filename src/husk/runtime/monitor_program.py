"""The program that monitors run: the host's conmon, without a library that they have no use for.

conmon is linked with libsystemd for the log driver journald, which Husk does not leave to it. Loading that library, and
the compression and cryptography that Debian 12's brings along, took half of the memory of each monitor (135 of 310 KB),
and half of the time until it runs. So monitors run a copy that is not linked with it. It lies in the data root,
since programs in /run may not be run on Debian, under its own name, which `ps` and /proc show. It is made anew when the
host has another conmon.

Where no copy can be made, or it does not run, monitors run the host's own program. So they do where SELinux decides by
a program's label what it may do.
"""

import asyncio
import contextlib
import logging
import os
from pathlib import Path

from husk.errors import HuskError, SystemFault
from husk.kernel import process
from husk.runtime import notes

log = logging.getLogger(__name__)

_LIBRARY = "libsystemd.so.0"
# What journald's log driver calls.
_UNUSED = "sd_journal_"
_SELINUX = "/sys/fs/selinux/enforce"


async def monitor_program(path: str, root: Path) -> str:
    """Choose the program to run instead of `path`, the host's conmon: a copy in `root`, or itself."""
    return await asyncio.to_thread(_settled, path, root) or await _made(path, root)


def _settled(path: str, root: Path) -> str:
    """Return the program that is known from before; empty if there is something to find out."""
    file = notes.identity(path)
    if not file or os.path.exists(_SELINUX):
        return path
    note = notes.read(root)
    if note is None or note.file != file:
        return ""
    copy = root / Path(path).name
    return str(copy) if os.access(copy, os.X_OK) else path


async def _made(path: str, root: Path) -> str:
    """Make the copy, if there can be one, and see whether it runs."""
    copy = root / Path(path).name
    fresh = copy.with_suffix(".new")
    try:
        if await asyncio.to_thread(_write, path, copy, fresh):
            tried = await process.run([str(fresh), "--version"], timeout=5.0)
            if tried.returncode != 0:
                raise SystemFault(f"the copy ends with {tried.returncode}")
            await asyncio.to_thread(fresh.replace, copy)
        await asyncio.to_thread(notes.write, root, path, ())
    except (OSError, HuskError) as error:
        log.info("monitors run %s as it is, not a copy of it that takes less memory: %s", path, error)
        await asyncio.to_thread(_discard, fresh)
        return path
    return await asyncio.to_thread(_settled, path, root) or path


def _write(path: str, copy: Path, fresh: Path) -> bool:
    from husk.runtime.elf import UnfitProgramError, without

    copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy.unlink(missing_ok=True)
    try:
        content = without(Path(path).read_bytes(), _LIBRARY, _UNUSED)
    except UnfitProgramError as error:
        log.debug("%s is run as it is: %s", path, error)
        return False
    with open(fresh, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o700)
        # Its note is believed after a power cut, too.
        os.fsync(file.fileno())
    return True


def _discard(fresh: Path) -> None:
    with contextlib.suppress(OSError):
        fresh.unlink()
