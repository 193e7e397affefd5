"""Claims on directories: an engine claims its data root and exec root before touching them, and a daemon its pid file,
so that nobody else uses them.

The claims are file locks, which the kernel drops when the process dies however it dies: a pid file left by a crash, or
a pid that another program has got since, stops nobody.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from husk.config import Config
from husk.errors import Conflict, SystemFault

# A lock belongs to all who have the file open: a child that a program with an engine has forked would keep it.
_held: set[int] = set()

# How often, and how many seconds apart, the lock of a process that has died is tried.
_TRIES = 100
_PAUSE = 0.02


def _let_go() -> None:
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


def pidfile_of(config: Config) -> Path:
    return config.pidfile or config.exec_root / "husk.pid"


@contextmanager
def claimed_roots(config: Config) -> Iterator[None]:
    """Hold data root and exec root, making them first; Conflict says who holds one of them."""
    _require_no_dockerd(config.data_root)
    with ExitStack() as held:
        for directory, mode in ((config.data_root, 0o710), (config.exec_root, 0o711)):
            _make(directory, mode, "--data-root" if directory == config.data_root else "--exec-root")
        held.enter_context(_lock(config.data_root / "lock", f"data root {config.data_root}", "--data-root"))
        held.enter_context(_lock(config.exec_root / "lock", f"exec root {config.exec_root}", "--exec-root"))
        yield


def _require_no_dockerd(data_root: Path) -> None:
    """Refuse a data root of dockerd: the start removes what no record of ours names, so its volumes would go."""
    if not (data_root / "state.db").exists() and (data_root / "image").is_dir() and (data_root / "volumes").is_dir():
        raise Conflict(
            f"the data root {data_root} holds the store of dockerd, which is not ours: choose another with --data-root"
        )


@contextmanager
def claimed_pidfile(config: Config) -> Iterator[None]:
    """Hold the pid file, with our pid in it; Conflict when a live daemon holds it."""
    pidfile = pidfile_of(config)
    _make(pidfile.parent, 0o711 if pidfile.parent == config.exec_root else 0o755, "--pidfile")
    with _lock(pidfile, f"pid file {pidfile}", "--pidfile"):
        try:
            yield
        finally:
            pidfile.unlink(missing_ok=True)


@contextmanager
def claimed_data_root(data_root: Path) -> Iterator[None]:
    """Hold an existing data root alone, for work on a store without a daemon; Conflict when a live daemon holds it."""
    with _lock(data_root / "lock", f"data root {data_root}", "--data-root"):
        yield


@contextmanager
def _lock(path: Path, what: str, flag: str) -> Iterator[None]:
    """Hold a lock on the file, with our pid in it for people to read."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise SystemFault(f"cannot open {path}: {error.strerror}. Choose another place with {flag}") from error
    _held.add(descriptor)
    try:
        if not _locked(descriptor):
            holder = _holder(descriptor) or "unknown"
            raise Conflict(
                f"the {what} is in use by another daemon (pid {holder}): stop that one, or choose another with {flag}"
            )
        with suppress(OSError):  # the lock is what counts; a full disk has no room for what people read
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        if descriptor in _held:
            _held.remove(descriptor)
            os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Lock the file. A forked child that has not run yet holds it a moment longer than the process that has died."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if Path(f"/proc/{_holder(descriptor)}").exists():
                return False
            time.sleep(_PAUSE)
        else:
            return True
    return False


def _holder(descriptor: int) -> str:
    """The pid in the file, or nothing."""
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip()


def _make(directory: Path, mode: int, flag: str) -> None:
    try:
        directory.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        raise SystemFault(
            f"cannot make the directory {directory}: {error.strerror}. Choose another with {flag}"
        ) from error
