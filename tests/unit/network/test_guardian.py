"""Rules that somebody removes are written again, each table for itself."""

import asyncio
import os
from collections.abc import Iterable
from typing import Any, cast

import pytest

from husk.errors import SystemFault
from husk.kernel.nftwatch import RuleWatch
from husk.network.guardian import Guardian


class Table:
    def __init__(self, name: str, whole: bool = True) -> None:
        self.table, self.whole = name, whole
        self.applied = 0
        self.fails: Exception | None = None
        self.looks = 0

    def intact(self) -> bool:
        self.looks += 1
        if self.fails is not None:
            raise self.fails
        return self.whole

    def apply(self) -> None:
        self.applied += 1
        self.whole = True


class FakeWatch:
    """Removals are bytes in a pipe."""

    def __init__(self, tables: Any) -> None:
        self.tables = list(tables)
        self._reading, self.writing = os.pipe()

    def fileno(self) -> int:
        return self._reading

    def removed(self) -> bool:
        return b"r" in os.read(self._reading, 100)

    def close(self) -> None:
        os.close(self._reading)
        os.close(self.writing)


@pytest.fixture
def watches() -> list[FakeWatch]:
    return []


def guard(watches: list[FakeWatch], *tables: Table) -> Guardian:
    def watch(names: Iterable[str]) -> RuleWatch:
        watches.append(FakeWatch(names))
        return cast(RuleWatch, watches[-1])

    return Guardian(tables, watch, pause=0.01)


async def until_written(table: Table) -> None:
    async with asyncio.timeout(10):
        while not table.applied:
            await asyncio.sleep(0.002)


async def test_only_the_table_that_is_not_whole_is_written(watches: list[FakeWatch]) -> None:
    good, flushed = Table("good"), Table("flushed", whole=False)
    guardian = guard(watches, good, flushed)
    guardian.open()
    assert watches[0].tables == ["good", "flushed"]
    os.write(watches[0].writing, b"r")
    await until_written(flushed)
    assert (good.applied, flushed.applied) == (0, 1)
    flushed.whole, flushed.applied = False, 0
    os.write(watches[0].writing, b"r")
    await until_written(flushed)
    await guardian.close()
    await guardian.close()


@pytest.mark.parametrize("fault", [SystemFault("nft says no"), OSError(4, "nft says no")])
async def test_a_table_that_cannot_be_looked_at_does_not_keep_the_next_from_being_written(
    watches: list[FakeWatch], caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    broken, flushed = Table("broken", whole=False), Table("flushed", whole=False)
    broken.fails = fault
    guardian = guard(watches, broken, flushed)
    guardian.open()
    os.write(watches[0].writing, b"r")
    await until_written(flushed)
    assert f"the rules of table broken cannot be checked or written: {fault}" in caplog.text
    # It is looked at again by itself, which is told once, and written as soon as that can be.
    async with asyncio.timeout(10):
        while broken.looks < 4:
            await asyncio.sleep(0.002)
    broken.fails = None
    await until_written(broken)
    assert caplog.text.count("cannot be checked or written") == 1
    await guardian.close()


async def test_other_news_are_no_reason_to_look(watches: list[FakeWatch]) -> None:
    flushed = Table("flushed", whole=False)
    guardian = guard(watches, flushed)
    guardian.open()
    os.write(watches[0].writing, b"x")
    await asyncio.sleep(0.05)
    assert flushed.applied == 0
    await guardian.close()


async def test_without_news_rules_come_back_when_somebody_asks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refused(tables: object) -> RuleWatch:
        raise OSError(1, "Operation not permitted")

    table = Table("a")
    guardian = Guardian((table,), refused)
    guardian.open()
    assert "rules that somebody removes come back only with SIGHUP" in caplog.text
    await guardian.restore()
    assert table.applied == 1
    await guardian.close()
