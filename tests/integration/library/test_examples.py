"""The programs in examples/ do what their first lines say."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from examples.ci import Pipeline, Step, run_pipeline
from examples.jobs import Job, run_jobs
from examples.logs import Shipper
from husk.kernel import process
from husk.library.embedded import Engine
from tests.support.engines import Place
from tests.support.waiting import until_async

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "test_service.py"
PLAIN = ["--rootdir=/", "-p", "no:cacheprovider"]
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[Engine]:
    with Place() as place:
        async with Engine.open(place.config) as engine:
            yield engine
            assert await engine.containers.list(all=True) == []
            assert place.traces.settle(os.getpid()) == []


async def test_jobs(engine: Engine):
    jobs = [
        Job("good", "busybox", "echo fine"),
        Job("bad", "busybox", ["sh", "-c", "echo no; exit 3"], tries=2),
        Job("slow", "busybox", "sleep 100", timeout=0.2),
        Job("big", "busybox", ["sh", "-c", "x=xxxxxxxx; while :; do x=$x$x; done"], memory="16m"),
        Job("lost", "localhost:1/none", "true"),
    ]
    reports = {report.name: report async for report in run_jobs(engine, jobs)}
    assert {name: report.state for name, report in reports.items()} == {
        "good": "done",
        "bad": "failed",
        "slow": "timed out",
        "big": "out of memory",
        "lost": "not started",
    }
    assert (reports["good"].output, reports["bad"].output, reports["bad"].tries) == ("fine\n", "no\n", 2)


async def test_who_stops_listening_ends_the_jobs(engine: Engine):
    reports = run_jobs(engine, [Job("quick", "busybox", "true"), Job("slow", "busybox", "sleep 100")])
    assert (await anext(reports)).name == "quick"
    await reports.aclose()
    assert await engine.containers.list(all=True) == []


async def test_a_pipeline(engine: Engine, tmp_path: Path):
    (tmp_path / "README.md").write_text("read me")
    said: list[str] = []
    good = Pipeline(
        "busybox",
        [Step("look", "cat README.md; echo; echo $CI"), Step("pack", "mkdir out; cp R* out/x")],
        {"CI": "yes"},
    )
    assert await run_pipeline(engine, good, tmp_path, said.append) == 0
    assert said == ["look | read me", "look | yes"]
    assert (tmp_path / "out" / "x").read_text() == "read me"
    bad = Pipeline("busybox", [Step("slow", "sleep 100", timeout=0.2), Step("never", "true")])
    assert await run_pipeline(engine, bad, tmp_path, said.append) == 124
    assert said[-2:] == ["slow | ended after 0.2 seconds", "slow failed: 124"]


async def test_logs_are_shipped_once_from_old_and_new_containers(engine: Engine):
    lines: list[Mapping[str, str]] = []
    seen: dict[str, str] = {}

    async def shipped(count: int) -> None:
        shipping = asyncio.get_running_loop().create_task(Shipper(engine, lines.append, seen).run())
        try:
            await until_async(lambda: len(lines) >= count or shipping.done(), f"{count} lines, not {lines}")
        finally:
            shipping.cancel()
            await asyncio.wait([shipping])
        assert shipping.cancelled(), shipping

    talk = ["sh", "-c", "echo one; read line; echo $line; sleep 100"]
    async with (
        engine.container("busybox", talk, name="old", stdin=True) as old,
        engine.container("busybox", "echo hidden", labels={"ship": "no"}),
    ):
        await shipped(1)
        async with old.attach(stdin=True) as console:
            await console.write(b"two\n")
        shipping = asyncio.get_running_loop().create_task(shipped(3))
        async with engine.container("busybox", ["sh", "-c", "echo new; sleep 100"], name="new"):
            await shipping
    assert sorted((line["container"], line["text"]) for line in lines) == [
        ("new", "new"),
        ("old", "one"),
        ("old", "two"),
    ]


async def test_a_service_for_tests():
    """In pytest itself, with the plugin alone."""
    with Place(own_exec_root=False) as place:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "husk.pytest_plugin", "-c", os.devnull, *PLAIN]
        roots = [f"--husk-data-root={place.config.data_root}", f"--basetemp={place.directory}/tmp"]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = await process.run([*command, *roots, str(EXAMPLE)], env=environment)
        assert b"2 passed" in done.stdout, done
