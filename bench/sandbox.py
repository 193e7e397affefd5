"""Snippets that the sandbox of examples/sandbox.py runs in a second, and the time of one.

    .venv/bin/python -m bench.sandbox [--runs 200] [--at-once 2]

CPU time counts the program, the engine in it, and every process that works for it: runtime, snippet, and the one that
is their parent. It is what tells on a machine that others use too.
"""

import asyncio
import os
import resource
import tempfile
import time
from pathlib import Path

from bench.sheet import Sheet
from examples.sandbox import Sandbox
from husk import Engine


def cpu() -> tuple[float, float]:
    """(of this process, of its children, and theirs that have ended)."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    alive = sum(map(_used, _children()))
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime + alive


def _children() -> list[str]:
    """Of each thread: a child is its parent's thread's."""
    return [pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]


def _used(pid: str) -> float:
    """Seconds of a process that lives, and of its children that have ended."""
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
    except OSError:
        return 0.0
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


async def measure(sheet: Sheet, directory: str) -> None:
    runs, at_once = sheet.options.runs, sheet.options.at_once
    async with Engine.open(data_root=f"{directory}/data", exec_root=f"{directory}/run", bridge="none") as engine:
        sandbox = Sandbox(engine, at_once=at_once, seconds=30)

        async def one(_: int) -> float:
            begun = time.perf_counter()
            result = await sandbox.run("echo hi")
            assert result.stdout == b"hi\n", result
            return (time.perf_counter() - begun) * 1e3

        for number in range(5):
            await one(number)
        sheet.say("one at a time")
        alone = [await one(number) for number in range(min(runs, 20))]
        sheet.say(f"{runs}, {at_once} at once")
        before, begun = cpu(), time.perf_counter()
        await asyncio.gather(*map(one, range(runs)))
        wall = time.perf_counter() - begun
        own, others = ((now - then) / runs * 1e3 for now, then in zip(cpu(), before, strict=True))
    of = f"{at_once} at once"
    sheet.add("husk", "snippets", "/s", runs / wall, of=of, better="higher")
    sheet.add("husk", "a snippet alone", "ms", alone)
    sheet.add("husk", "a snippet: processor", "ms", own + others, of=of)
    sheet.add("husk", "a snippet: processor, program and engine", "ms", own, of=of)
    sheet.add("husk", "a snippet: processor, runtime and snippet", "ms", others, of=of)


def main() -> None:
    sheet = Sheet("sandbox", __doc__)
    sheet.option("runs", 200, quick=20)
    sheet.option("at-once", 2, quick=2)
    sheet.read()
    with tempfile.TemporaryDirectory(prefix="hk-", dir="/tmp") as directory:
        asyncio.run(measure(sheet, directory))
    sheet.finish()


if __name__ == "__main__":
    main()
