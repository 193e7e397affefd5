"""A daemon that gets hostile input, and what is said of it: no 500, traceback, stall or litter, little memory."""

import os
import re
import time
from collections import deque
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path

from tests.support.daemon import Daemon

# What a daemon may take at its height, above what it had before, for inputs of 64 KiB.
MEMORY = 192 << 20
# Descriptors and threads that may be open afterwards, above those before: pools fill with use.
_MORE = 24
# Inputs that are told: a stall is seen a moment after what caused it.
_TOLD = 5
# Inputs between two looks at the memory and at whether others are still answered.
_SELDOM = 25
_FAULT = re.compile(rb"Traceback \(most recent call last\)|never awaited|never retrieved")
# Of archives, mostly.
_BLANKS = re.compile(r"(?:\\x00){9,}|0{9,}")
# Below the data root: what clients make lies in these, and a daemon that has things has the first ones.
_PLACES = ("containers", "volumes", "layers/l", "layers/w", "layers/trash", "blobs/sha256", "blobs/ingest")
_OF_BUILDS = ("mirrors", "cache-mounts")
# In seconds: what is said of resources settles.
_SETTLED = 20.0


class Wrong(AssertionError):
    """Something that the daemon should not have done, and the last inputs before it."""


class Watch:
    """Tell it of each input (`after`); it raises Wrong at the first that did harm."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.count = 0
        self._inputs: deque[str] = deque(maxlen=_TOLD)
        self._read = 0
        self._log()
        daemon.stalls()  # what is loaded with the first use of it may have taken long
        self._begin()

    def _begin(self) -> None:
        self._memory = _field(self.daemon.pid, "VmRSS")
        self._held = self._holds()

    def restarted(self) -> None:
        """It is another process now."""
        self._begin()

    def after(self, shown: str, status: int = 0, said: bytes = b"") -> None:
        """An input was sent, and answered with `status`, 0 for none."""
        self.count += 1
        self._inputs.append(_BLANKS.sub("...", shown))
        self._check(status, said)

    def _check(self, status: int, said: bytes) -> None:
        if status == 500 and not _is_of_others(said):
            self.wrong(f"500: {said[:500]!r}")
        text = self._log()
        if found := _FAULT.search(text):
            self.wrong(
                "the log has\n" + text[max(0, found.start() - 500) : found.end() + 4000].decode(errors="replace")
            )
        if stalls := self.daemon.stalls():
            self.wrong("\n".join(stalls))
        if self.daemon.process is None or self.daemon.process.poll() is not None:
            self.wrong("the daemon has ended")
        if self.count % _SELDOM == 0:
            self.look()

    def look(self) -> None:
        """Look at the things that are expensive to ask for."""
        peak = _field(self.daemon.pid, "VmHWM")
        if peak > self._memory + MEMORY:
            self.wrong(f"it had {self._memory >> 20} MiB, and {peak >> 20} MiB at its height")
        try:
            status = self.daemon.http("GET", "/_ping", timeout=10).status
        except (OSError, HTTPException) as error:
            self.wrong(f"others are not answered: {error!r}")
        if status != 200:
            self.wrong(f"_ping: {status}")

    def wrong(self, why: str) -> None:
        raise Wrong(f"{why}\nafter input {self.count}:\n" + "\n".join(self._inputs))

    def _log(self) -> bytes:
        """Return the lines that were written since the last call."""
        with self.daemon.log_path.open("rb") as log:
            log.seek(self._read)
            text = log.read()
        self._read += len(text)
        return text

    # -- what is left ----------------------------------------------------------------------------------------------

    def clean(self) -> None:
        """Remove all that clients can remove; nothing of it may be left, in the process, on the host or on the disk."""
        deadline = time.monotonic() + _SETTLED
        while (left := list(self._left_by_clients())) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            self.wrong("it left\n  " + "\n  ".join(left))
        self.daemon.check_no_litter()
        self.look()

    def _left_by_clients(self) -> Iterable[str]:
        """Return the things that are left when all is removed. Those that a client asked for and did not wait for
        may only now be there."""
        daemon = self.daemon
        daemon.remove_containers()
        daemon.http("POST", "/swarm/leave?force=1")
        for path, key, name in (("/networks", "", "Id"), ("/volumes", "Volumes", "Name"), ("/images/json", "", "Id")):
            listed = daemon.http("GET", path).json()
            for each in (listed[key] if key else listed) or ():
                if each.get("Name") not in ("bridge", "host", "none"):
                    daemon.http("DELETE", f"{path.removesuffix('/json')}/{each[name]}?force=1")
        daemon.http("POST", "/build/prune?all=1")
        yield from self._left()

    def _left(self) -> Iterable[str]:
        root = self.daemon.config.data_root
        for place in (*_PLACES, *_OF_BUILDS):
            if place in _PLACES or (root / place).is_dir():
                left = sorted(path for path in (root / place).iterdir() if not path.name.startswith("."))
                yield from (f"{place}/{path.name} {_begin_of(path)}" for path in left)
        for kind, number in self._holds().items():
            if number > self._held[kind] + _MORE:
                yield f"{number} {kind}, where there were {self._held[kind]}"

    def _holds(self) -> dict[str, int]:
        place = f"/proc/{self.daemon.pid}"
        return {"descriptors": len(os.listdir(f"{place}/fd")), "threads": len(os.listdir(f"{place}/task"))}


def _begin_of(path: Path) -> str:
    if path.is_dir():
        return str(sorted(each.name for each in path.iterdir())[:10])
    return repr(path.read_bytes()[:300])


def _is_of_others(said: bytes) -> bool:
    """Tell if an answer of 500 says that somebody else has failed: a registry, a runtime, the kernel."""
    return b"internal error" not in said


def _field(pid: int, name: str) -> int:
    """Bytes, of /proc/PID/status."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))
