"""Layers whose files may not have been on the disk: they are unpacked again, unless somebody uses them."""

import hashlib
import shutil
from pathlib import Path

import pytest

from husk.kernel.mount import mount_overlay, unmount
from husk.storage.layers.recover import from_the_base, recover
from husk.storage.layers.store import Layer
from tests.support.layers import Store, directory, make_tar, member

TAR = make_tar(directory("d"), member("d/file", b"content" * 1000))
TOP = make_tar(member("top", b"x" * 5000))


async def cut_off(store: Store, *tars: bytes) -> list[Layer]:
    """A chain of layers whose daemon was killed before their files were synced."""
    layers: list[Layer] = []
    for tar in tars:
        layers.append(await store.add(tar, layers[-1].chain_id if layers else ""))
    await store.blobs.settle()
    await store.die()
    await store.open()
    return layers


async def test_files_that_are_gone_come_back_from_the_base_up(store: Store) -> None:
    layers = await cut_off(store, TAR, TOP)
    assert from_the_base(store.layers, reversed(layers)) == layers
    for layer in layers:
        shutil.rmtree(store.layers.path(layer))
        store.layers.path(layer).mkdir()
    await recover(store.layers, store.blobs)
    base, top = (store.layers.get(layer.chain_id) for layer in layers)
    assert base and top and base.synced and top.synced
    assert (store.layers.path(base) / "d/file").read_bytes() == b"content" * 1000
    assert (store.layers.path(top) / "top").read_bytes() == b"x" * 5000
    assert await store.layers.sound(top.chain_id)
    await store.emptied()
    assert store.directories() == sorted([base.directory, top.directory])


async def test_what_is_synced_is_left_alone(store: Store) -> None:
    layer = await store.add(TAR)
    await store.close()
    await store.open()
    await recover(store.layers, store.blobs)
    assert store.directories() == [layer.directory]


async def test_a_layer_whose_blob_is_damaged_as_well_is_mended_by_who_brings_it_again(store: Store) -> None:
    [layer] = await cut_off(store, TAR)
    store.blobs.path(layer.blob).write_bytes(TAR[:1000])
    await recover(store.layers, store.blobs)
    assert not await store.layers.sound(layer.chain_id)
    await store.add(TAR)
    assert await store.layers.sound(layer.chain_id)
    assert hashlib.sha256(store.blobs.path(layer.blob).read_bytes()).hexdigest() in layer.blob


@pytest.mark.parametrize("base", ["", "layers", "data root"])
async def test_what_a_container_runs_on_is_not_exchanged(store: Store, tmp_path: Path, base: str) -> None:
    """However the mount table names its directory."""
    [layer] = await cut_off(store, TAR)
    path = store.layers.path(layer)
    target = tmp_path / "mounted"
    target.mkdir()
    lower = [str(path)]
    if base:
        # So many that their whole names do not fit, as with images of very many layers.
        for number in range(120):
            (path.parent / f"f{number}").mkdir()
        lower += [str(entry) for entry in path.parent.iterdir() if entry != path]
    if base == "data root":
        (store.root / "mount-points").mkdir()
        lower.insert(0, str(store.root / "mount-points"))
    mount_overlay(lower, "", "", str(target)) if len(lower) > 1 else _mount_one(str(path), tmp_path, target)
    try:
        await recover(store.layers, store.blobs)
        assert store.layers.get(layer.chain_id) == layer
        assert (target / "d/file").exists()
    finally:
        unmount(str(target), detach=True)
    await store.close()
    await store.open()
    kept = store.layers.get(layer.chain_id)
    assert kept is not None and kept.synced and kept.directory == layer.directory


def _mount_one(lower: str, tmp_path: Path, target: Path) -> None:
    """One read-only directory alone is none that overlayfs takes."""
    for name in ("upper", "work"):
        (tmp_path / name).mkdir()
    mount_overlay([lower], str(tmp_path / "upper"), str(tmp_path / "work"), str(target))


async def test_while_the_power_holds_nothing_is_unpacked_again(store: Store) -> None:
    [layer] = await cut_off(store, TAR)
    await recover(store.layers, store.blobs, power_held=True)
    assert store.directories() == [layer.directory]
    await store.close()
    await store.open()
    kept = store.layers.get(layer.chain_id)
    assert kept and kept.synced


async def test_files_that_are_short_come_back_even_then(store: Store) -> None:
    [layer] = await cut_off(store, TAR)
    (store.layers.path(layer) / "d/file").write_bytes(b"")
    await recover(store.layers, store.blobs, power_held=True)
    kept = store.layers.get(layer.chain_id)
    assert kept and (store.layers.path(kept) / "d/file").read_bytes() == b"content" * 1000
