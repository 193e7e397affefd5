"""A CI step runner: the steps of a pipeline, one after the other in one container, on a copy of the sources.

    sudo python examples/ci.py pipeline.toml .

    image = "busybox"
    environment = { CI = "true" }

    [[steps]]
    name = "test"
    run = "test -f README.md && echo it is there"

    [[steps]]
    name = "package"
    run = "mkdir -p out && cp README.md out/"
    timeout = 60

Output is shown as it comes. The first step that fails ends the pipeline, and its exit code is ours. What the steps
leave in `out` is copied back.
"""

import asyncio
import io
import sys
import tarfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

import husk

WORKSPACE = "/workspace"


class Step(msgspec.Struct, frozen=True):
    name: str
    run: str
    timeout: float = 600


class Pipeline(msgspec.Struct, frozen=True):
    image: str
    steps: list[Step]
    environment: Mapping[str, str] = {}
    memory: str = "1g"


async def run_step(box: husk.Container, step: Step, say: Callable[[str], None]) -> int:
    """Its exit code; 124 when its time was over, as `timeout` has it."""
    process = box.exec(["sh", "-e", "-c", step.run], working_dir=WORKSPACE)
    try:
        async with asyncio.timeout(step.timeout):
            async for line in process.lines():
                say(f"{step.name} | {line}")
    except TimeoutError:
        say(f"{step.name} | ended after {step.timeout:g} seconds")
        return 124
    return process.exit_code or 0


async def run_pipeline(
    engine: husk.Client, pipeline: Pipeline, sources: Path, say: Callable[[str], None] = print
) -> int:
    """Run all steps, and copy `out` back; the exit code of the first that fails, or 0."""
    async with engine.container(
        pipeline.image, ["sleep", "infinity"], environment=pipeline.environment, memory=pipeline.memory, init=True
    ) as box:
        await box.put(WORKSPACE, sources)
        for step in pipeline.steps:
            if code := await run_step(box, step, say):
                say(f"{step.name} failed: {code}")
                return code
        await copy_out(box, sources)
    return 0


async def copy_out(box: husk.Container, sources: Path) -> None:
    try:
        archive = b"".join([piece async for piece in box.get_archive(f"{WORKSPACE}/out")])
    except husk.errors.NotFound:
        return
    with tarfile.open(fileobj=io.BytesIO(archive)) as entries:
        entries.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 and later
        entries.extractall(sources)


async def main(pipeline: Pipeline, sources: Path) -> int:
    async with husk.Engine.open() as engine:
        return await run_pipeline(engine, pipeline, sources)


if __name__ == "__main__":
    wanted = msgspec.convert(tomllib.loads(Path(sys.argv[1]).read_text()), Pipeline)
    sys.exit(asyncio.run(main(wanted, Path(sys.argv[2]).resolve())))
