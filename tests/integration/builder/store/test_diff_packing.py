"""Diffs are packed once each, small ones several by one worker, and one that fails leaves nothing."""

import asyncio
import os
import tarfile
from pathlib import Path

import pytest

from husk.builder.store import diff_packing
from husk.errors import SystemFault
from tests.support.layers import Store


async def write(store: Store, data: bytes) -> str:
    async with store.diffs.workspace("") as space:
        (space.upper / "file").write_bytes(data)
        return await space.keep()


@pytest.fixture
def started(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of diffs that each worker was given."""
    numbers: list[int] = []
    real = diff_packing.pack

    async def pack(nursery, diffs, clamp):
        numbers.append(len(diffs))
        return await real(nursery, diffs, clamp)

    monkeypatch.setattr(diff_packing, "pack", pack)
    return numbers


async def test_small_diffs_are_packed_together_and_large_ones_alone(store: Store, started: list[int]):
    elements = [await write(store, b"%d" % number) for number in range(18)]
    elements.insert(3, await write(store, b"x" * 300_000))
    elements.insert(1, elements[0])
    layers = await store.diffs.layers(" ".join(elements))
    assert sorted(started) == [1, 2, 16]
    found = []
    for layer in layers:
        with tarfile.open(store.blobs.path(layer.blob)) as archive:
            file = archive.extractfile("file")
            assert file
            found.append(file.read())
    wanted = [b"%d" % number for number in range(18)]
    wanted.insert(3, b"x" * 300_000)
    wanted.insert(1, b"0")
    assert found == wanted


async def test_what_is_being_packed_is_not_packed_by_another(store: Store, started: list[int]):
    elements = [await write(store, b"%d" % number) for number in range(4)]
    await asyncio.gather(store.diffs.layers(" ".join(elements[:3])), store.diffs.layers(" ".join(elements[1:])))
    assert started == [3, 1]


async def test_one_that_fails_leaves_nothing_of_the_others(store: Store):
    elements = [await write(store, b"%d" % number) for number in range(3)]
    lost = Path(store.diffs.lower(elements[1])[0])
    hidden = lost.with_name("hidden")
    lost.rename(hidden)
    with pytest.raises(SystemFault, match="packing failed"):
        await store.diffs.layers(" ".join(elements))
    assert os.listdir(store.root / "blobs/ingest") == os.listdir(store.root / "blobs/sha256") == []
    hidden.rename(lost)
    assert len(await store.diffs.layers(" ".join(elements))) == 3
