"""Notes of which files of Husk run code in a process, for `bench.walk`: a profiler's hook, put into each Python process
of a daemon.

`bench.walk` has a `sitecustomize` import this module; a worker, which Python starts without that, is started through
this file instead. The notes are memory that all share, since a worker closes its descriptors and changes its root: the
number of the walk under way, 0 between two, then a byte for each source file with the number of the last walk that ran
it.
"""

import mmap
import os
import runpy
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

SOURCES = Path(__file__).resolve().parents[1] / "src" / "husk"


def source_files() -> list[str]:
    """All files that are noted, in the order of their bytes."""
    return sorted(str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py"))


def install(place: str) -> None:
    """Note from now on what runs in this process, in its threads and in what it forks."""
    with open(place, "r+b") as file:
        notes = mmap.mmap(file.fileno(), 0)
    numbers = {f"{SOURCES}{os.sep}{name}": number for number, name in enumerate(source_files(), 1)}
    seen: set[CodeType] = set()
    last = 0

    def hook(frame: FrameType, event: str, _: object) -> None:
        nonlocal last
        walk = notes[0]
        if walk != last:
            seen.clear()
            last = walk
        code = frame.f_code
        if walk and event == "call" and code not in seen:
            seen.add(code)
            if (number := numbers.get(code.co_filename)) is not None:
                notes[number] = walk

    threading.setprofile(hook)
    sys.setprofile(hook)


def lead_through(place: str) -> None:
    """Send what this process starts with its own interpreter through this file."""
    sys.executable = place + ".python"


def main() -> None:
    """Run what Python was asked to run: a piece of code, or a file."""
    place, *given = sys.argv[1:]
    arguments = [argument for argument in given if argument not in ("-I", "-S")]
    install(place)
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<walk>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
