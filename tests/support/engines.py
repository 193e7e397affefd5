"""An engine inside the test's own process: a place of its own on the host, with a look at what was left there.

with Place() as place:
    async with Engine.open(place.config) as engine: ...
"""

import os
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from husk.kernel.trees import discard_tree
from husk.library.embedded import EngineConfig
from tests.support.daemon import unused_subnet
from tests.support.litter import Traces


class Place:
    """The roots of an engine; leaving it fails where something of the engine is left on the host."""

    def __init__(self, *, own_exec_root: bool = True) -> None:
        """Without an exec root of its own it has the one that goes with its data root, below /run."""
        self.directory = Path(tempfile.mkdtemp(prefix="hk-", dir="/tmp"))
        exec_root = self.directory / "run" if own_exec_root else None
        self.config = EngineConfig(data_root=self.directory / "data", exec_root=exec_root, bip=unused_subnet())
        self.traces = Traces(self.config.settings(), self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = self.traces.clean()
        discard_tree(self.directory)
        discard_tree(self.config.settings().exec_root)
        if left and error is None:
            raise AssertionError("the engine left on the host:\n  " + "\n  ".join(left))


class Belongings:
    """The belongings of a process: threads, children and descriptors."""

    def __init__(self) -> None:
        self.threads = {thread.name for thread in threading.enumerate()}
        self.children = set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
        self.descriptors = set(_descriptors())

    def new(self) -> list[str]:
        """Return those that have been added since."""
        now = Belongings()
        return [
            *(f"thread {name}" for name in now.threads - self.threads),
            *(f"process {pid}" for pid in now.children - self.children),
            *(f"descriptor {each}" for each in now.descriptors - self.descriptors),
        ]


def _descriptors() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except OSError:
            continue  # that of the listing itself
    return found
