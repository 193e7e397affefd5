"""Results of builds go to a directory of a client, which here is a worker of ours."""

import asyncio
import os

import pytest

from husk.builder.store.sync.exchange import exchange
from husk.builder.store.sync.exports import send_stacks
from husk.builder.store.workers.jobs import ReceiveJob
from husk.storage.workers.nursery import Nursery
from tests.integration.builder.store.sync.test_workers import channel
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


async def export(store, nursery, stacks, place, **options):
    place.mkdir()
    theirs, ours = channel()
    job = ReceiveJob(root=str(place), old="", new=f"{place}.table")
    await asyncio.gather(exchange(nursery, job, theirs), send_stacks(store.diffs, nursery, stacks, ours, **options))


async def test_a_stack_is_sent_as_one_tree(store: Store, nursery, tmp_path):
    below = await diff(store, "", kept=b"below", covered=b"old")
    above = await diff(store, below, covered=b"new", added=b"more")
    await export(store, nursery, {"": f"{below} {above}"}, tmp_path / "out")
    found = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert found == {"kept": b"below", "covered": b"new", "added": b"more"}


async def test_platforms_have_directories_and_all_files_one_time(store: Store, nursery, tmp_path):
    element, other = await diff(store, "", file=b"x"), await diff(store, "", file=b"y")
    stacks = {"linux_arm64": other, "linux_amd64": element, "linux_386": ""}
    await export(store, nursery, stacks, tmp_path / "out", mtime=5 * 10**9)
    assert os.stat(tmp_path / "out/linux_amd64/file").st_mtime == 5
    assert (tmp_path / "out/linux_arm64/file").read_bytes() == b"y"
    assert sorted(os.listdir(tmp_path / "out")) == ["linux_386", "linux_amd64", "linux_arm64"]


async def test_an_empty_stack_is_an_empty_directory(store: Store, nursery, tmp_path):
    await export(store, nursery, {"": ""}, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == []
