#!/usr/bin/env python3
"""What does one small step of a build cost? `true` on busybox, again and again, with the engine's own parts.

    sudo .venv/bin/python bench/steps.py [--runs 50] [--runtime crun] [--profile]

Prints the median and the spread of the wall time, the processor time of this process and of those that it started, and
the same for a step with four mounts. It needs no daemon and no image, and leaves nothing behind.
"""

import argparse
import asyncio
import cProfile
import os
import pstats
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from husk.config import Config
from husk.engine.builder.operations import Mount, SecretMount, TmpfsMount
from tests.support.daemon import unused_subnet
from tests.support.steps import Bench, FakeSession, cache, open_bench


def processor() -> float:
    """Seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


async def measure(bench: Bench, name: str, runs: int, **words: object) -> None:
    for _ in range(5):
        await bench.run("true", **words)  # type: ignore[arg-type]
    times = []
    before = processor()
    for _ in range(runs):
        started = time.perf_counter()
        await bench.run("true", **words)  # type: ignore[arg-type]
        times.append((time.perf_counter() - started) * 1000)
    used = (processor() - before) / runs * 1000
    times.sort()
    low, high = times[len(times) // 10], times[-len(times) // 10]
    print(f"{name:24} median {statistics.median(times):5.1f} ms ({low:.1f} to {high:.1f}), processor {used:.1f} ms")


async def main(runs: int, runtime: str) -> None:
    with tempfile.TemporaryDirectory(prefix="hk-steps-", dir="/tmp") as directory:
        config = Config(data_root=Path(directory, "data"), exec_root=Path(directory, "run"), bip=unused_subnet())
        async with open_bench(config, runtime) as bench:
            await measure(bench, "true", runs)
            await measure(bench, "true, no network", runs, body={"network": "none"})
            session = FakeSession({"key": b"hush"})
            mounts = [
                cache("/cache"),
                Mount(target="/bound", input=0, read_only=True),
                Mount(target="/memory", kind=TmpfsMount()),
                Mount(target="/run/secrets/key", kind=SecretMount("key")),
            ]
            await measure(bench, "true, four mounts", runs, mounts=mounts, session=session)


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("needs root")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--runtime", default="")
    parser.add_argument("--profile", action="store_true", help="tell which functions of ours take the time")
    arguments = parser.parse_args()
    if arguments.profile:
        with cProfile.Profile() as profile:
            asyncio.run(main(arguments.runs, arguments.runtime))
        pstats.Stats(profile).sort_stats("cumulative").print_stats(40)
    else:
        asyncio.run(main(arguments.runs, arguments.runtime))
