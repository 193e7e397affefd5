#!/usr/bin/env python3
"""What does one small step of a build cost? `true` on busybox, again and again, with the engine's own parts.

    PYTHONPATH=. .venv/bin/python bench/steps.py [--runs 50] [--runtime crun] [--profile]

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

import msgspec

from husk.config import Config
from husk.engine.builder.operations import Mount, SecretMount, TmpfsMount
from husk.runtime.foreground import Foreground
from husk.runtime.spec import ContainerSpec, oci_spec
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
    tell(name, times, (processor() - before) / runs * 1000)


def tell(name: str, times: list[float], used: float) -> None:
    times.sort()
    low, high = times[len(times) // 10], times[-len(times) // 10]
    print(f"{name:24} median {statistics.median(times):5.1f} ms ({low:.1f} to {high:.1f}), processor {used:.1f} ms")


def write_bundle(root: Path, directory: Path) -> None:
    for name in ("proc", "sys", "dev"):
        (root / name).mkdir(exist_ok=True)
    spec = ContainerSpec(rootfs=str(root), args=("true",), env=("PATH=/bin",), cgroup_path="/hk-alone")
    (directory / "config.json").write_bytes(msgspec.json.encode(oci_spec(spec, cgroup_v2=False)))


async def measure_runtime(bench: Bench, runs: int) -> None:
    """The runtime alone on the same root, without anything of ours around it: what a step cannot be faster than."""
    runtime = bench.runtimes.default
    with tempfile.TemporaryDirectory(prefix="hk-alone-", dir="/tmp") as directory:
        write_bundle(bench.stacks.path("diff:busybox"), Path(directory))
        times = []
        before = processor()
        for number in range(runs):
            started = time.perf_counter()
            ended = await Foreground().run(Path(directory), f"alone{number}", runtime, lambda data, stderr: None)
            times.append((time.perf_counter() - started) * 1000)
            assert ended.status == 0, ended
        tell(f"{runtime.name} run alone", times, (processor() - before) / runs * 1000)


async def main(runs: int, runtime: str) -> None:
    with tempfile.TemporaryDirectory(prefix="hk-steps-", dir="/tmp") as directory:
        config = Config(data_root=Path(directory, "data"), exec_root=Path(directory, "run"), bip=unused_subnet())
        async with open_bench(config, runtime) as bench:
            await measure_runtime(bench, runs)
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
