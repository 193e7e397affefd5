"""Bombs: a few bytes that want to become many are refused when the limit is reached, and nothing of them stays."""

import gzip
import io
import os
import subprocess
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import zstandard

from husk.errors import InvalidParameter
from tests.support.layers import Store, make_tar, member
from tests.support.registry import digest_of

LIMIT = 2_000_000


@pytest.fixture
async def limited(tmp_path: Path) -> AsyncIterator[Store]:
    if os.geteuid() != 0:
        pytest.skip("unpacking makes devices and changes owners: it needs root")
    store = Store(tmp_path / "store", max_layer_size=LIMIT)
    await store.open()
    yield store
    await store.close()


def sparse(directory: Path) -> bytes:
    """One terabyte of nothing."""
    with open(directory / "hole", "wb") as file:
        file.truncate(1 << 40)
    return subprocess.run(
        ["tar", "-c", "--sparse", "-C", str(directory), "hole"], capture_output=True, check=True
    ).stdout


def many_files() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number in range(5000):
            archive.addfile(tarfile.TarInfo(f"{number}"))
    return out.getvalue()


def bombs(directory: Path) -> dict[str, bytes]:
    zeros = make_tar(member("zeros", bytes(50_000_000)))
    return {
        "gzip": gzip.compress(zeros),
        "zstd": zstandard.compress(zeros),
        "plain": zeros,
        "empty files": gzip.compress(many_files()),
        "same file again and again": gzip.compress(make_tar(*[member("f", bytes(500_000))] * 5)),
        "after the end": gzip.compress(make_tar(member("f", b"x")) + bytes(50_000_000)),
        "sparse": sparse(directory),
    }


@pytest.mark.parametrize("known", [False, True], ids=["digest unknown", "digest known"])
@pytest.mark.parametrize(
    "kind", ["gzip", "zstd", "plain", "empty files", "same file again and again", "after the end", "sparse"]
)
async def test_a_bomb_is_refused_and_leaves_nothing(limited: Store, tmp_path: Path, kind: str, known: bool):
    bomb = bombs(tmp_path)[kind]
    with pytest.raises(InvalidParameter, match=r"layer is larger than 2000000 bytes when unpacked.*max-layer-size"):
        await limited.unpack(bomb, digest_of(bomb) if known else None, piece=1 << 16)
    await limited.emptied()
    assert limited.nothing_left()


async def test_a_layer_below_the_limit_is_taken(limited: Store):
    layer = await limited.add(gzip.compress(make_tar(member("zeros", bytes(LIMIT - 20_000)))))
    assert layer.size == LIMIT - 20_000


async def test_a_containers_own_changes_have_the_same_limit(limited: Store, tmp_path: Path):
    upper = tmp_path / "upper"
    upper.mkdir()
    (upper / "file").write_bytes(bytes(LIMIT))
    with pytest.raises(InvalidParameter, match="max-layer-size"):
        await limited.layers.ingest_diff(upper)
    await limited.emptied()
    assert limited.nothing_left()
