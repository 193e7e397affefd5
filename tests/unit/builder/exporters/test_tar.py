"""The files of a result as an archive, with doubles of who packs and who gets it."""

from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.exporters.tar import TarExport
from husk.builder.jobs.results import Result
from husk.builder.jobs.status_log import StatusLog
from husk.errors import InvalidParameter
from tests.unit.builder.exporters.test_local import REF, Stated
from tests.unit.builder.exporters.test_parts import platforms


class Archives:
    async def read(self, stacks, latest=None):
        yield f"{stacks} {latest}".encode()
        yield bytes(1 << 20)


class Session:
    id = "s"

    def __init__(self) -> None:
        self.sent: Any = None

    async def send_file(self, number, chunks, metadata):
        first, *_ = [chunk async for chunk in chunks]
        self.sent = number, first.decode(), metadata
        return True


async def test_the_archive_goes_to_the_client():
    job: Any = SimpleNamespace(log=StatusLog(), session=Session())
    archives: Any = Archives()
    stated: Any = Stated()
    assert await TarExport(archives, stated).export(job, Result(ref=REF), {"source-date-epoch": "5"}, 1) == {}
    assert job.session.sent == (1, "{'': 'diff:a'} 5", {})
    told = [(each.status.current, each.status.done) for each in job.log.told if hasattr(each, "status")]
    assert told[-1] == (told[0][0], True)
    result = Result(refs={"linux/arm64": REF}, metadata={"refs.platforms": platforms("arm64")})
    await TarExport(archives, stated).export(job, result, {}, 0)
    assert job.session.sent[1] == "{'linux_arm64': 'diff:a'} None"


async def test_nobody_to_send_it_to():
    job: Any = SimpleNamespace(log=StatusLog(), session=None)
    nobody: Any = None
    with pytest.raises(InvalidParameter):
        await TarExport(nobody, nobody).export(job, Result(ref=REF), {}, 1)
