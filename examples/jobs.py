"""A job runner: jobs from a file of JSON lines, so many at once, each with its limits, its time and its tries.

    sudo python examples/jobs.py jobs.jsonl

    {"name": "resize", "image": "busybox", "command": "sh -c 'sleep 1; echo done'", "timeout": 10, "memory": "64m"}
    {"name": "flaky", "image": "busybox", "command": "false", "tries": 3}

One line of JSON per job is written as it ends.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

import msgspec

import husk


class Job(msgspec.Struct, frozen=True):
    name: str
    image: str
    command: str | list[str]
    memory: str = "128m"
    cpus: float = 1
    timeout: float = 60
    tries: int = 1


class Report(msgspec.Struct, frozen=True):
    name: str
    state: str  # done, failed, timed out, out of memory or not started
    tries: int
    seconds: float
    output: str


async def run_job(engine: husk.Client, job: Job) -> Report:
    """Run it, again if it fails, as often as it may be tried."""
    begun, state, output, tries = time.monotonic(), "", "", 0
    while tries < job.tries and state != "done":
        tries += 1
        try:
            result = await engine.run(
                job.image,
                job.command,
                memory=job.memory,
                memory_swap=job.memory,
                cpus=job.cpus,
                pids_limit=256,
                timeout=job.timeout,
                max_output=1 << 20,
                labels={"job": job.name},
            )
        except husk.errors.HuskError as error:
            state, output = "not started", error.message
            continue
        state = (
            "timed out"
            if result.timed_out
            else "out of memory"
            if result.oom_killed
            else "done"
            if result.ok
            else "failed"
        )
        output = (result.stdout + result.stderr).decode(errors="replace")
    return Report(job.name, state, tries, round(time.monotonic() - begun, 3), output)


async def run_jobs(engine: husk.Client, jobs: Iterable[Job], at_once: int = 4) -> AsyncGenerator[Report, None]:
    """The reports of all jobs, as they end. Who stops listening ends the jobs that run."""
    free = asyncio.Semaphore(at_once)

    async def one(job: Job) -> Report:
        async with free:
            return await run_job(engine, job)

    tasks = [asyncio.get_running_loop().create_task(one(job)) for job in jobs]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def main(jobs: Iterable[Job]) -> int:
    good = True
    async with husk.Engine.open() as engine:
        async for report in run_jobs(engine, jobs):
            print(json.dumps(msgspec.to_builtins(report)), flush=True)
            good = good and report.state == "done"
    return 0 if good else 1


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_bytes().splitlines()
    sys.exit(asyncio.run(main([msgspec.json.decode(line, type=Job) for line in lines if line.strip()])))
