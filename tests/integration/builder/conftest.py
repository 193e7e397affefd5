"""Real steps on roots of their own, and a check after every test that nothing of them is left."""

import logging
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from husk.config import Config
from tests.support.daemon import RUNTIME, unused_subnet
from tests.support.litter import Traces
from tests.support.steps import Bench, open_bench


@pytest.fixture
def place() -> Iterator[Config]:
    """Settings for roots that are gone afterwards."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        config = Config(data_root=directory / "data", exec_root=directory / "run", bip=unused_subnet())
        traces = Traces(config, directory)
        yield config
        traces.remember()
        assert traces.clean() == []


@pytest.fixture
async def bench(place: Config, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Bench]:
    with caplog.at_level(logging.WARNING):
        async with open_bench(place, RUNTIME) as bench:
            yield bench
            await bench.close_steps()
            traces = Traces(place, place.data_root.parent)
            assert traces.settle(os.getpid()) == []
            assert left_of_steps(bench) == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def left_of_steps(bench: Bench) -> list[str]:
    """Return the files that steps have left in the roots."""
    paths = bench.paths
    found = [str(path) for top in (paths.data, paths.run, paths.stagings) if top.exists() for path in top.iterdir()]
    found += [f"workspace {number}" for number in range(bench.stacks.open)]
    return found + [f"known to {runtime.name}: {id}" for runtime in bench.runtimes.known() for id in runtime.known()]
