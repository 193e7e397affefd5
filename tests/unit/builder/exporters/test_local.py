"""Files of a result for a client, with doubles of both."""

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.exporters.local import LocalExport
from husk.builder.jobs.results import Result
from husk.builder.jobs.status_log import StatusLog
from husk.errors import InvalidParameter
from tests.unit.builder.exporters.test_parts import platforms


class Sender:
    def __init__(self):
        self.sent = []

    async def send(self, stacks, channel, mtime, progress):
        progress(1 << 20)
        self.sent.append((stacks, channel, mtime))


class Stated:
    """Puts a statement beside all files."""

    def __init__(self):
        self.apart = []

    @asynccontextmanager
    async def beside(self, part, name):
        yield await part.stack()

    async def check_apart(self, parts):
        self.apart.append(parts)


class Session:
    id = "s"

    @asynccontextmanager
    async def send_directory(self, number):
        yield f"channel {number}"


class Ref:
    async def stack(self):
        return "diff:a"


REF: Any = Ref()


class Bench:
    def __init__(self) -> None:
        self.sender: Any = Sender()
        self.stated: Any = Stated()
        self.job: Any = SimpleNamespace(log=StatusLog(), session=Session())

    async def export(self, result: Result, **attributes: str) -> dict[str, str]:
        doubles: tuple[Any, ...] = (self.sender, self.stated)
        return await LocalExport(*doubles).export(self.job, result, attributes, 2)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_the_files_go_to_the_client(bench):
    assert await bench.export(Result(ref=REF)) == {}
    assert bench.sender.sent == [({"": "diff:a"}, "channel 2", None)]
    told = [(each.status.current, each.status.done) for each in bench.job.log.told if hasattr(each, "status")]
    assert told == [(1 << 20, False), (1 << 20, True)]


async def test_with_one_time_for_all_if_the_build_has_one(bench):
    metadata = {"source.date.epoch": b"7", "refs.platforms": platforms("amd64", "arm64")}
    await bench.export(Result(refs={"linux/amd64": REF, "linux/arm64": REF}, metadata=metadata))
    stacks = {"linux_amd64": "diff:a", "linux_arm64": "diff:a"}
    assert bench.sender.sent == [(stacks, "channel 2", 7 * 10**9)]


async def test_nothing_is_nothing(bench):
    await bench.export(Result())
    assert bench.sender.sent == [({"": ""}, "channel 2", None)]


async def test_all_platforms_in_one_directory_go_one_after_another(bench):
    metadata = {"refs.platforms": platforms("amd64", "arm64")}
    result = Result(refs={"linux/amd64": REF, "linux/arm64": REF}, metadata=metadata)
    await bench.export(result, **{"platform-split": "false"})
    assert bench.sender.sent == [({"": "diff:a"}, "channel 2", None)] * 2
    assert bench.stated.apart == [{"linux/amd64": "diff:a", "linux/arm64": "diff:a"}]


async def test_nobody_to_send_it_to(bench):
    bench.job.session = None
    with pytest.raises(InvalidParameter):
        await bench.export(Result(ref=REF))
