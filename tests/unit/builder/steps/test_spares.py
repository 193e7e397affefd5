"""A runtime is loaded while a step runs, and is the next step's, or goes."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from husk.builder.steps.spares import Spares
from husk.errors import SystemFault
from husk.runtime.oci import OCIRuntime
from husk.runtime.supervise.begun import ContainerEnd

CRUN = OCIRuntime("crun", "/usr/bin/crun", (), Path("/root"), known_files=True)
RUNC = OCIRuntime("runc", "/usr/bin/runc", (), Path("/root"))


class Begun:
    def __init__(self, directory: Path, container_id: str) -> None:
        self.directory, self.container_id = directory, container_id
        self.waits = False

    async def start(self) -> None:
        self.directory.mkdir()
        (self.directory / "config.json").touch()
        self.waits = True

    async def run(self, config: bytes, output: Callable[[bytes, bool], None], command: str = "") -> ContainerEnd:
        raise AssertionError("nobody runs it here")

    async def end(self) -> None:
        self.waits = False

    async def discard(self) -> None:
        self.waits = False
        shutil.rmtree(self.directory)


class Foreground:
    def __init__(self) -> None:
        self.made: list[Begun] = []
        self.kind = Begun

    def begin(self, directory: Path, container_id: str, runtime: OCIRuntime) -> Begun:
        self.made.append(self.kind(directory, container_id))
        return self.made[-1]


@pytest.fixture
def foreground() -> Any:
    return Foreground()


@pytest.fixture
def spares(foreground: Any, tmp_path: Path) -> Spares:
    return Spares(foreground, lambda id: tmp_path / id, kept_for=60)


async def ready(spares: Spares, runtime: OCIRuntime = CRUN) -> None:
    """All that is begun with it is done."""
    spares.prepare(runtime)
    for _ in range(10):
        await asyncio.sleep(0)


async def test_it_is_the_next_step_s(spares: Spares, foreground: Any, tmp_path: Path) -> None:
    assert spares.take(CRUN) is None
    await ready(spares)
    await ready(spares)
    assert len(foreground.made) == 1, "one is enough"
    assert (begun := spares.take(CRUN)) is not None
    assert begun.waits and begun.directory == tmp_path / begun.container_id
    assert spares.take(CRUN) is None
    await spares.close()
    assert begun.waits, "whoever has taken it ends it"


async def test_nobody_gets_one_of_another_runtime(spares: Spares, foreground: Any) -> None:
    await ready(spares, RUNC)
    assert foreground.made == [], "it reads no pipes"
    await ready(spares)
    assert spares.take(RUNC) is None
    await spares.close()


async def test_what_nobody_takes_goes(foreground: Any, tmp_path: Path) -> None:
    spares = Spares(foreground, lambda id: tmp_path / id, kept_for=0.01)
    await ready(spares)
    async with asyncio.timeout(30):
        while list(tmp_path.iterdir()):
            await asyncio.sleep(0.005)
    assert not foreground.made[0].waits
    assert spares.take(CRUN) is None
    await spares.close()


async def test_nothing_stays_of_it_at_the_end(spares: Spares, foreground: Any, tmp_path: Path) -> None:
    spares.prepare(CRUN)
    await spares.close()
    assert not foreground.made[0].waits and list(tmp_path.iterdir()) == []
    await ready(spares)
    assert len(foreground.made) == 1, "none is made any more"


async def test_one_that_has_ended_by_itself_is_not_given(spares: Spares, foreground: Any, tmp_path: Path) -> None:
    await ready(spares)
    foreground.made[0].waits = False
    assert spares.take(CRUN) is None
    await spares.close()
    assert list(tmp_path.iterdir()) == []


async def test_one_that_cannot_be_started_is_missed_by_nobody(spares: Spares, foreground: Any, tmp_path: Path) -> None:
    class Broken(Begun):
        async def start(self) -> None:
            self.directory.mkdir()
            raise SystemFault("no room")

    foreground.kind = Broken
    await ready(spares)
    assert spares.take(CRUN) is None and list(tmp_path.iterdir()) == []
    foreground.kind = Begun
    await ready(spares)
    assert spares.take(CRUN) is not None
    await spares.close()
