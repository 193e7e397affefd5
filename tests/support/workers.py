"""The workers of a process: those that its forkers have forked, but for the one that waits in reserve."""

from pathlib import Path

from husk.storage.workers.forker import IDLE_NAME


def forkers_of(pid: object) -> set[int]:
    return {child for child in children_of(pid) if b"forker" in _read(child, "cmdline")}


def workers_of(pid: object) -> set[int]:
    """The workers that have work. One that was just forked has no name of its own yet, nor any work."""
    named = {worker for worker in _forked(pid) if _read(worker, "comm").startswith(b"husk-")}
    return named - reserve_of(pid)


def reserve_of(pid: object) -> set[int]:
    return {worker for worker in _forked(pid) if _read(worker, "comm").strip() == IDLE_NAME.encode()}


def _forked(pid: object) -> set[int]:
    return {worker for forker in forkers_of(pid) for worker in children_of(forker)}


def children_of(pid: object) -> set[int]:
    return {int(child) for child in _read(pid, f"task/{pid}/children").split()}


def _read(pid: object, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
