"""A program that kills a daemon's store at one line of its code after the other, and looks what the next one finds.

Each life is a fork of this process: it finds a page of debts and pays it, owes more on a full disk, and pays that with
a change of the same record. It tells what was acknowledged: the records are as after that, or as after the next step.
"""

import asyncio
import logging
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from husk.storage.state import debts, reserve, schema, store
from husk.storage.state.store import Change
from tests.support.full_store import SmallStore

LARGE = bytes(1 << 16)
CODE = frozenset(str(module.__file__) for module in (store, debts, reserve, schema))

# The records after each step that is acknowledged; before the first one they are as a start leaves them.
STATES: list[dict[str, bytes]] = [
    {"b": b"1", "c": LARGE},
    {"b": b"1", "c": LARGE, "d": LARGE},
    {"b": b"2", "c": LARGE},
]


def fill(state: SmallStore) -> None:
    state.reserve.give_up()
    state.fill()


def opened(root: Path) -> SmallStore:
    return SmallStore.open(root / "state.db", root / "state.owed")


async def prepare(root: Path) -> None:
    """Leave what a daemon leaves that was killed on a full disk."""
    state = opened(root)
    await state.commit(Change("k", "a", b"1"), Change("k", "b", b"1"))
    fill(state)
    await state.settle(Change("k", "a", None), Change("k", "c", LARGE))
    assert (root / "state.owed").exists()


async def live(root: Path, told: int) -> None:
    def tell() -> None:
        os.write(told, b".")

    state = opened(root)
    fill(state)
    await state.settle(Change("k", "d", LARGE))
    tell()
    state.make_room()
    await state.commit(Change("k", "d", None), Change("k", "b", b"2"))
    tell()


class Killer:
    """Kills this process at the given line of the store's code that it comes to."""

    def __init__(self, left: int) -> None:
        self._left = left

    def __call__(self, frame: FrameType, event: str, _: Any) -> "Killer | None":
        if frame.f_code.co_filename not in CODE:
            return None
        if event == "line":
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


def forked(work: Any) -> int:
    """The status of a process that does the work."""
    if child := os.fork():
        return os.waitpid(child, 0)[1]
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def main(root: Path) -> NoReturn:
    logging.disable()
    vars(os)["fdatasync"] = lambda _: None  # a kill is no power cut
    first = root / "first"
    first.mkdir()
    if forked(lambda: asyncio.run(prepare(first))):
        sys.exit("it could not be prepared")
    line = 0
    while True:
        line += 1
        place = root / str(line)
        shutil.copytree(first, place)
        # A page names its store.
        page = place / "state.owed"
        page.write_bytes(page.read_bytes().replace(bytes(first), bytes(place)))
        told, tell = os.pipe()

        def life(place: Path = place, tell: int = tell, line: int = line) -> None:
            killer = Killer(line)
            threading.settrace(killer)
            sys.settrace(killer)
            asyncio.run(live(place, tell))

        status = forked(life)
        os.close(tell)
        acknowledged = len(os.read(told, 100))
        os.close(told)

        def look(place: Path = place, acknowledged: int = acknowledged, line: int = line) -> None:
            for _ in range(2):
                following = opened(place)
                found = following.load("k")
                following.close()
                if found not in STATES[acknowledged : acknowledged + 2]:
                    sys.exit(f"killed at line {line}, after {acknowledged} steps: {sorted(found)}")

        if forked(look):
            sys.exit(1)
        shutil.rmtree(place)
        if not status:
            print(line)
            sys.exit(0)
        if not os.WIFSIGNALED(status):
            sys.exit(f"line {line}: status {status}")


main(Path(sys.argv[1]))
