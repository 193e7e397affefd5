"""Reading of a client's path into a container, and the time that others wait for a slow one."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from husk.engine.containers import copy
from husk.engine.containers.copy import Copier, clean_path
from husk.errors import InvalidParameter
from husk.storage.workers.pack import base_name, source


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("/", "/"),
        (".", "/."),
        ("/.", "/."),
        ("data", "/data"),
        ("//data//x", "/data/x"),
        ("/data/", "/data/"),
        ("/data/.", "/data/."),
        ("/data/./", "/data/."),
        ("/data/..", "/"),
        ("../../etc", "/etc"),
        ("/a/../../b/", "/b/"),
    ],
)
def test_clean_path(path: str, clean: str):
    assert clean_path(path) == clean


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_refused(path: str):
    with pytest.raises(InvalidParameter):
        clean_path(path)


@pytest.mark.parametrize(("path", "name"), [("/", "/"), ("/.", "."), ("/a/b", "b"), ("/a/b/", "b"), ("/a/b/.", ".")])
def test_base_name(path: str, name: str):
    assert base_name(path) == name


def test_the_root_has_no_name_in_its_archive():
    assert source("/", True) == ("/", "")
    assert source("/a/b", True) == ("/a/b", "b")


async def test_copies_that_wait_for_a_container_leave_threads_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    @contextlib.asynccontextmanager
    async def mounted(instance: object) -> AsyncIterator[Path]:
        yield tmp_path

    going_on = threading.Event()
    monkeypatch.setattr(copy, "put_small", lambda *_: going_on.wait(60))
    index, places, roots, publish = MagicMock(), MagicMock(), MagicMock(mounted=mounted), MagicMock()
    record = index.find.return_value.record
    record.mounts, record.host_config.readonly_rootfs, record.config.user = [], False, ""
    copier = Copier(index, places, roots, MagicMock(), publish)
    try:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            copies = [group.create_task(copier.write_small("box", "/", b"", as_user=False)) for _ in range(40)]
            assert await asyncio.to_thread(lambda: "others")
            busy = [task for task in copies if not task.done()]
            assert 0 < len(busy) < 5
            busy[0].cancel()
            await asyncio.sleep(0)
            assert not await copier.write_small("box", "/", b"", as_user=False), "its thread still waits"
            going_on.set()
    finally:
        going_on.set()
    assert [task.result() for task in busy[1:]] == [True] * len(busy[1:])
    assert not any(task.result() for task in copies if task not in busy)
    assert await copier.write_small("box", "/", b"", as_user=False)
    assert publish.call_count == len(busy)
