"""How many snippets does the sandbox of examples/sandbox.py run in a second, and how long does one take?

    python bench/sandbox.py [--runs 200] [--at-once 2]

CPU time counts the program, the engine in it, and every process that ended for it: monitor, runtime and snippet. It is
what tells on a machine that others use too.
"""

import argparse
import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from examples.sandbox import Sandbox  # noqa: E402
from husk import Engine  # noqa: E402


def cpu() -> tuple[float, float]:
    """(of this process, of its children that have ended)."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime


async def measure(runs: int, at_once: int, directory: str) -> None:
    async with Engine.open(data_root=f"{directory}/data", exec_root=f"{directory}/run", bridge="none") as engine:
        sandbox = Sandbox(engine, at_once=at_once, seconds=30)
        for _ in range(5):
            await sandbox.run("echo warm")
        took: list[float] = []

        async def one() -> None:
            begun = time.perf_counter()
            result = await sandbox.run("echo hi")
            took.append(time.perf_counter() - begun)
            assert result.stdout == b"hi\n", result

        alone = []
        for _ in range(20):
            begun = time.perf_counter()
            await sandbox.run("echo hi")
            alone.append(time.perf_counter() - begun)
        own, others = cpu()
        begun = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(runs)))
        wall = time.perf_counter() - begun
        own, others = (now - before for now, before in zip(cpu(), (own, others), strict=True))
    print(f"{runs / wall:.1f} runs a second, {at_once} at once, on {os.cpu_count()} processors")
    print(f"one alone: median {statistics.median(alone) * 1000:.1f} ms, best {min(alone) * 1000:.1f} ms")
    print(
        f"CPU time per run: {(own + others) / runs * 1000:.1f} ms"
        f" (program and engine {own / runs * 1000:.1f}, processes {others / runs * 1000:.1f})"
    )
    print(f"load average: {' '.join(f'{load:.1f}' for load in os.getloadavg())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hk-", dir="/tmp") as directory:
        asyncio.run(measure(arguments.runs, arguments.at_once, directory))


if __name__ == "__main__":
    main()
