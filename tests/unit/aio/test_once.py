"""A part that is made when it is first needed."""

import asyncio
import importlib
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from husk.aio.once import Once, load


class Maker:
    def __init__(self, *failures):
        self.failures = list(failures)
        self.made = 0

    async def make(self):
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop()
        self.made += 1
        return f"thing {self.made}"


async def test_all_get_the_same():
    maker = Maker()
    once = Once(maker.make, "thing")
    assert maker.made == 0
    both: Any = await asyncio.gather(once.get(), once.get())
    assert list(both) == ["thing 1", "thing 1"]
    assert await once.get() == "thing 1"


async def test_after_a_failure_the_next_one_tries_again():
    maker = Maker(OSError("no"))
    once = Once(maker.make, "thing")
    with pytest.raises(OSError, match="no"):
        await once.get()
    assert await once.get() == "thing 1"


async def test_one_who_is_cancelled_leaves_it_to_the_others():
    maker = Maker()
    once = Once(maker.make, "thing")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await once.get()
    assert await once.get() == "thing 1"


async def test_closing_gives_what_was_made():
    maker = Maker()
    once = Once(maker.make, "thing")
    assert await once.close() is None
    await once.get()
    assert await once.close() == "thing 1"


async def test_closing_after_a_failure_gives_nothing():
    once = Once(Maker(OSError("no")).make, "thing")
    with pytest.raises(OSError, match="no"):
        await once.get()
    assert await once.close() is None


async def test_changes_reach_what_was_made_and_what_will_be():
    changed = []
    maker: Any = Maker()
    once = Once(maker.make, "it")
    once.change(lambda made: changed.append("before"))
    once.change(lambda made: changed.append("last before"))
    await once.get()
    once.change(lambda made: changed.append("after"))
    assert changed == ["last before", "after"]


async def test_a_module_is_loaded_in_a_thread_and_once(tmp_path, monkeypatch):
    (tmp_path / "loaded_late.py").write_text("import threading\nTHREAD = threading.get_ident()\n")
    monkeypatch.syspath_prepend(tmp_path)
    await asyncio.gather(load("loaded_late"), load("loaded_late"))
    first = sys.modules["loaded_late"]
    assert threading.get_ident() != first.THREAD
    await load("loaded_late")
    assert sys.modules["loaded_late"] is first


async def test_a_module_that_cannot_be_loaded_says_so_each_time():
    for _ in range(2):
        with pytest.raises(ImportError):
            await load("husk.no_such_module")


def test_a_package_that_is_a_door_loads_its_modules_when_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "a_door"
    package.mkdir()
    door = 'from husk.aio.once import late\n__getattr__ = late(__name__, "heavy")\n'
    (package / "__init__.py").write_text(door)
    (package / "heavy.py").write_text("weight = 9")
    (package / "other.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    a_door = importlib.import_module("a_door")
    assert "a_door.heavy" not in sys.modules
    assert a_door.heavy.weight == 9 and "a_door.heavy" in sys.modules
    with pytest.raises(AttributeError, match="'a_door' has no attribute 'other'"):
        _ = a_door.other
    assert importlib.import_module("a_door.other") is a_door.other
