"""Results of builds go to a directory of a client, which here is a worker of ours."""

import asyncio
import os

import pytest

from husk.storage.sync.exchange import exchange
from husk.storage.sync.exports import send_stack
from husk.storage.workers.messages import ReceiveJob
from husk.storage.workers.nursery import Nursery
from tests.integration.storage.sync.test_workers import channel
from tests.support.layers import Store


async def diff(store, below, **files):
    async with store.diffs.workspace(below) as space:
        for name, data in files.items():
            (space.upper / name).write_bytes(data)
        return await space.keep()


@pytest.fixture
async def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


async def export(store, nursery, stack, place, **options):
    place.mkdir()
    theirs, ours = channel()
    job = ReceiveJob(root=str(place), old="", new=f"{place}.table")
    await asyncio.gather(exchange(nursery, job, theirs), send_stack(store.diffs, nursery, stack, ours, **options))


async def test_a_stack_is_sent_as_one_tree(store: Store, nursery, tmp_path):
    below = await diff(store, "", kept=b"below", covered=b"old")
    above = await diff(store, below, covered=b"new", added=b"more")
    await export(store, nursery, f"{below} {above}", tmp_path / "out")
    found = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert found == {"kept": b"below", "covered": b"new", "added": b"more"}


async def test_a_platform_has_a_directory_and_all_files_one_time(store: Store, nursery, tmp_path):
    element = await diff(store, "", file=b"x")
    await export(store, nursery, element, tmp_path / "out", prefix="linux_amd64", mtime=5 * 10**9)
    assert os.stat(tmp_path / "out/linux_amd64/file").st_mtime == 5


async def test_an_empty_stack_is_an_empty_directory(store: Store, nursery, tmp_path):
    await export(store, nursery, "", tmp_path / "out")
    assert os.listdir(tmp_path / "out") == []
