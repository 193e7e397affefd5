"""Cost of one small step of a build: `true` on busybox, again and again, with the engine's own parts.

    sudo .venv/bin/python -m bench.steps [--runs 50] [--runtime crun] [--profile]

Prints the median and the spread of the wall time, the processor time of this process and of those that it started, and
the same for a step with four mounts. It needs no daemon and no image, and leaves nothing behind.
"""

import asyncio
import contextlib
import cProfile
import itertools
import os
import pstats
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import msgspec

from bench.sheet import Sheet
from husk.builder.graph.operations import ExecMount, SecretMount, TmpfsMount
from husk.config import Config
from husk.runtime.spec.document import RuntimeContainer, oci_spec
from husk.runtime.supervise.foreground import Foreground
from tests.support.daemon import unused_subnet
from tests.support.steps import Bench, FakeSession, cache, open_bench


def processor() -> float:
    """Seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


async def measure(sheet: Sheet, name: str, step: Callable[[], Awaitable[object]]) -> None:
    sheet.say(name)
    runs = sheet.options.runs
    for _ in range(5):
        await step()
    times = []
    before = processor()
    for _ in range(runs):
        started = time.perf_counter()
        await step()
        times.append((time.perf_counter() - started) * 1000)
    sheet.add("husk", name, "ms", times)
    sheet.add("husk", f"{name}: processor", "ms", (processor() - before) / runs * 1000)


def write_bundle(root: Path, directory: Path) -> None:
    for name in ("proc", "sys", "dev"):
        (root / name).mkdir(exist_ok=True)
    spec = RuntimeContainer(rootfs=str(root), args=("true",), env=("PATH=/bin",), cgroup_path="/hk-alone")
    (directory / "config.json").write_bytes(msgspec.json.encode(oci_spec(spec, cgroup_v2=False)))


async def measure_runtime(sheet: Sheet, bench: Bench) -> None:
    """The runtime alone on the same root, without anything of ours around it: what a step cannot be faster than."""
    runtime = bench.runtimes.default
    numbers = itertools.count()
    with tempfile.TemporaryDirectory(prefix="hk-alone-", dir="/tmp") as directory:
        write_bundle(bench.stacks.path("diff:busybox"), Path(directory))

        async def run() -> None:
            name = f"alone{next(numbers)}"
            ended = await Foreground().run(Path(directory), name, runtime, lambda data, stderr: None)
            assert ended.status == 0, ended

        await measure(sheet, f"{runtime.name} run alone", run)


async def measure_all(sheet: Sheet) -> None:
    with tempfile.TemporaryDirectory(prefix="hk-steps-", dir="/tmp") as directory:
        config = Config(data_root=Path(directory, "data"), exec_root=Path(directory, "run"), bip=unused_subnet())
        async with open_bench(config, sheet.options.runtime) as bench:
            await measure_runtime(sheet, bench)
            await measure(sheet, "step of `true`", lambda: bench.run("true"))
            await measure(sheet, "step of `true`, no network", lambda: bench.run("true", body={"network": "none"}))
            session = FakeSession({"key": b"hush"})
            mounts = [
                cache("/cache"),
                ExecMount(target="/bound", input=0, read_only=True),
                ExecMount(target="/memory", kind=TmpfsMount()),
                ExecMount(target="/run/secrets/key", kind=SecretMount("key")),
            ]
            step = partial(bench.run, "true", mounts=mounts, session=session)
            await measure(sheet, "step of `true`, four mounts", step)


def main() -> None:
    if os.geteuid() != 0:
        sys.exit("needs root")
    sheet = Sheet("steps", __doc__)
    sheet.option("runs", 50, quick=10)
    sheet.parser.add_argument("--runtime", default="")
    sheet.parser.add_argument("--profile", action="store_true", help="tell which functions of ours take the time")
    options = sheet.read()
    with cProfile.Profile() if options.profile else contextlib.nullcontext() as profile:
        asyncio.run(measure_all(sheet))
    if profile is not None:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(40)
    sheet.finish()


if __name__ == "__main__":
    main()
