"""A log that grows too long gets a new file, and its monitor is told."""

import gzip
import shutil
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from husk.aio.tasks import Tasks
from husk.engine.containers.index import Instance
from husk.engine.logs.rotation import Rotator
from husk.engine.model.container import Container
from husk.engine.model.container_config import HostConfig, LogConfig
from husk.errors import SystemFault
from husk.runtime.logs.files import LogFiles
from tests.support.waiting import until_async
from tests.unit.engine.records import container


class Writer:
    """A container with its monitor, which writes a log and opens a new file when it is told to."""

    def __init__(self, directory: Path, tasks: Tasks) -> None:
        self.path = directory / "container.log"
        self.path.write_bytes(b"")
        self.reopened = 0
        self.is_gone = False
        self.tasks = tasks
        self.instead: Callable[[Container], None] | None = None
        self.rotator = Rotator(lambda id: self.path, self.reopen, tasks, (0.01, 0.01), 0.01)

    def reopen(self, record: Container) -> None:
        if self.instead is not None:
            self.instead(record)
            return
        if self.is_gone:
            raise SystemFault("the monitor is gone")
        self.reopened += 1
        self.path.touch()

    def reopened_since(self, before: int) -> bool:
        return self.reopened > before

    def write(self, size: int) -> None:
        with self.path.open("ab") as log:
            log.write(b"x" * size)

    def runs(self, driver: str = "json-file", **options: str) -> Instance:
        config = LogConfig(type=driver, config={name.replace("_", "-"): value for name, value in options.items()})
        instance = Instance(container(host_config=HostConfig(log_config=config)), self.tasks)
        self.rotator.running(instance)
        return instance

    @property
    def aside(self) -> set[str]:
        return {path.name for path in self.path.parent.iterdir()} - {self.path.name}


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[Writer]:
    tasks = Tasks()
    writer = Writer(tmp_path, tasks)
    yield writer
    await tasks.cancel_all()
    writer.rotator.close()


async def test_a_full_file_is_put_aside_and_the_monitor_told(writer: Writer) -> None:
    writer.runs(max_size="1k", max_file="3")
    writer.write(2000)
    await until_async(lambda: writer.reopened == 1, "the monitor is told")
    assert writer.aside == {"container.log.1"}
    assert writer.path.stat().st_size == 0


async def test_no_more_files_are_kept_than_were_asked_for(writer: Writer) -> None:
    writer.runs(max_size="1k", max_file="2")
    for _ in range(3):
        before = writer.reopened
        writer.write(2000)
        await until_async(partial(writer.reopened_since, before), "a new file")
    await until_async(lambda: writer.aside == {"container.log.3"}, "the old ones are gone")


async def test_a_container_that_ends_amid_a_rotation_keeps_no_more_files_either(writer: Writer) -> None:
    box = writer.runs(max_size="1k", max_file="2")
    for number in (1, 2):
        writer.path.with_name(f"container.log.{number}").write_bytes(b"old")

    def reopen(record: Container) -> None:
        writer.rotator.ended(box)
        writer.path.touch()

    writer.instead = reopen
    writer.write(2000)
    await until_async(lambda: writer.aside == {"container.log.3"}, "the old ones are gone")
    writer.rotator.running(box)
    writer.rotator.ended(box)
    await writer.tasks.join()


async def test_a_log_that_was_full_before_is_put_aside_at_once(writer: Writer) -> None:
    writer.write(2000)
    writer.runs(max_size="1k", max_file="2")
    await until_async(lambda: writer.reopened == 1, "the monitor is told")


async def test_one_that_a_former_daemon_put_aside_is_begun_anew(writer: Writer) -> None:
    writer.path.rename(writer.path.with_name("container.log.1"))
    writer.runs(max_size="1k", max_file="3")
    await until_async(lambda: writer.path.exists(), "the file that the monitor began")
    assert (writer.reopened, writer.aside) == (1, {"container.log.1"})


async def test_when_the_monitor_is_gone_nothing_more_is_done(writer: Writer) -> None:
    instance = writer.runs(max_size="1k", max_file="3")
    writer.is_gone = True
    writer.write(2000)
    await until_async(lambda: writer.aside == {"container.log.1"}, "it is put aside")
    writer.rotator.ended(instance)
    assert writer.reopened == 0 and not writer.path.exists()


async def test_what_a_stuck_monitor_still_writes_to_is_not_packed(writer: Writer) -> None:
    told = 0

    def nothing_yet(record: Container) -> None:
        nonlocal told
        told += 1

    writer.instead = nothing_yet
    with writer.path.open("ab") as held:
        writer.runs(max_size="1k", max_file="3", compress="true")
        held.write(b"x" * 2000)
        held.flush()
        await until_async(lambda: told > 4, "it is told again and again")
        assert writer.aside == {"container.log.1"}
        held.write(b"late")
    writer.instead = None
    writer.write(2000)
    await until_async(lambda: writer.aside == {"container.log.1.gz", "container.log.2.gz"}, "both are packed")
    with gzip.open(writer.path.with_name("container.log.1.gz")) as packed:
        assert packed.read() == b"x" * 2000 + b"late"


async def test_an_old_file_that_somebody_removes_ends_no_rotation(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidied: list[int] = []

    def fails_first(files: LogFiles, max_files: int, compress: bool) -> None:
        tidied.append(max_files)
        if len(tidied) == 1:
            raise FileNotFoundError("container.log.1")

    monkeypatch.setattr(LogFiles, "tidy", fails_first)
    writer.runs(max_size="1k", max_file="3")
    for _ in range(2):
        before = writer.reopened
        writer.write(2000)
        await until_async(partial(writer.reopened_since, before), "the file is rotated")


async def test_a_log_removed_with_its_container_is_no_longer_watched(writer: Writer) -> None:
    def removed(record: Container) -> None:
        shutil.rmtree(writer.path.parent)
        raise SystemFault("the monitor is gone")

    writer.instead = removed
    writer.runs(max_size="1k", max_file="3")
    writer.write(2000)
    await until_async(lambda: writer.tasks.count == 0, "nobody watches it")


@pytest.mark.parametrize("driver", ["json-file", "none"])
async def test_a_log_without_a_limit_is_left_alone(writer: Writer, driver: str) -> None:
    writer.runs(driver)
    assert writer.tasks.count == 0, "nobody watches it"
