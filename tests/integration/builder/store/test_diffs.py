"""Changes of a step of a build are kept, stacked, made a layer, and gone without a trace."""

import asyncio
import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from husk.builder.store.workspaces import Workspace
from husk.errors import NotFound, SystemFault
from husk.kernel.mount import mount_overlay, unmount
from husk.storage.check import difference_from_blob
from husk.storage.layers.recover import recover
from husk.storage.layers.store import KIND as LAYER
from husk.storage.layers.store import Layer
from husk.storage.state.store import Change
from tests.support.layers import Store, directory, make_tar, member
from tests.support.trees import deepen
from tests.support.waiting import soon


@pytest.fixture
async def base(store: Store) -> Layer:
    return await store.add(
        make_tar(
            directory("./", mode=0o711, uid=7, gid=8),
            directory("etc"),
            member("etc/a", b"a"),
            directory("var"),
            member("var/old", b"old"),
        )
    )


def stack(*elements: str) -> str:
    return " ".join(element for element in elements if element)


async def write(store: Store, below: str, **files: bytes) -> str:
    async with store.diffs.workspace(below) as space:
        for name, data in files.items():
            (space.upper / name).write_bytes(data)
        return await space.keep()


class Mounted:
    """A workspace as a step sees it."""

    def __init__(self, space: Workspace, target: Path) -> None:
        self.space, self.target = space, target

    def __enter__(self) -> Path:
        self.target.mkdir(exist_ok=True)
        mount_overlay(self.space.lower, str(self.space.upper), str(self.space.work), str(self.target))
        return self.target

    def __exit__(self, *_: object) -> None:
        unmount(str(self.target))


def names_in_blob(store: Store, layer: Layer) -> list[str]:
    with tarfile.open(store.blobs.path(layer.blob)) as archive:
        return archive.getnames()


async def test_a_step_on_an_overlay_becomes_a_layer_with_whiteouts(store: Store, base: Layer, tmp_path: Path):
    below = f"layer:{base.chain_id}"
    async with store.diffs.workspace(below) as space:
        with Mounted(space, tmp_path / "merged") as root:
            assert (stat.S_IMODE(root.stat().st_mode), root.stat().st_uid, root.stat().st_gid) == (0o711, 7, 8)
            (root / "etc/a").unlink()
            (root / "var/old").unlink()
            (root / "var").rmdir()
            (root / "var").mkdir()
            (root / "var/new").write_bytes(b"12345")
            os.chown(root / "var/new", 5, 6)
        element = await space.keep()
    assert store.diffs.has(element) and store.diffs.size(element) == 5
    assert os.listdir(tmp_path / "layers/w") == []
    [bottom, top] = await store.diffs.layers(stack(below, element))
    assert bottom == base and top.parent == base.chain_id
    assert names_in_blob(store, top) == ["etc", "etc/.wh.a", "var", "var/.wh..wh..opq", "var/new"]
    assert str(store.layers.path(top)) == store.diffs.lower(element)[0]
    assert await difference_from_blob(top, store.layers.path(top), store.blobs.path(top.blob), tmp_path) == ""


async def test_a_small_step_that_will_be_a_layer_needs_no_worker(
    store: Store, base: Layer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    below = f"layer:{base.chain_id}"
    elements = []
    for layered in (False, True):
        async with store.diffs.workspace(below) as space:
            with Mounted(space, tmp_path / "merged") as root:
                (root / "etc/a").unlink()
                (root / "var/old").unlink()
                (root / "var").rmdir()
                (root / "var").mkdir()
                (root / "var/new").write_bytes(b"12345")
                for path in ("var/new", "var", "etc", "."):
                    os.utime(root / path, (1, 1))
            elements.append(await space.keep(layered=layered))
    [_, by_worker] = await store.diffs.layers(stack(below, elements[0]))
    monkeypatch.setattr(store.nursery, "spawn", None)
    [_, top] = await store.diffs.layers(stack(below, elements[1]))
    assert top.diff_id == by_worker.diff_id, "the very bytes"
    assert names_in_blob(store, top) == ["etc", "etc/.wh.a", "var", "var/.wh..wh..opq", "var/new"]
    assert store.diffs.size(elements[1]) == 5


async def test_what_is_not_kept_is_gone(store: Store, base: Layer):
    before = store.directories()
    with pytest.raises(RuntimeError):
        async with store.diffs.workspace(f"layer:{base.chain_id}") as space:
            (space.upper / "file").touch()
            raise RuntimeError
    await store.emptied()
    assert store.directories() == before
    assert os.listdir(store.root / "layers/w") == os.listdir(store.root / "layers/trash") == []


async def test_a_step_that_writes_nothing_is_a_layer_with_nothing_in_it(store: Store):
    async with store.diffs.workspace("") as space:
        element = await space.keep()
    assert store.diffs.all() == [element] and store.diffs.size(element) == 0
    (layer,) = await store.diffs.layers(element)
    assert layer.diff_id == "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
    assert store.diffs.shared() == {element}


async def test_an_empty_stack_can_be_mounted(store: Store, tmp_path: Path):
    async with store.diffs.workspace("") as space:
        with Mounted(space, tmp_path / "merged") as root:
            assert os.listdir(root) == []
            (root / "file").touch()
        assert await space.keep()


async def test_a_second_export_packs_nothing(store: Store, monkeypatch: pytest.MonkeyPatch):
    element = await write(store, "", a=b"1")
    first = await store.diffs.layers(element)
    monkeypatch.setattr(store.nursery, "spawn", None)
    assert await store.diffs.layers(element) == first
    assert await store.diffs.chain_ids(element) == [first[0].chain_id]


async def test_diffs_are_packed_again_when_no_layer_needed_the_blob(store: Store):
    element = await write(store, "", a=b"1")
    [layer] = await store.diffs.layers(element)
    await store.layers.remove(layer.chain_id)
    assert not store.blobs.has(layer.blob)
    assert Path(store.diffs.lower(element)[0]).is_dir()
    assert (await store.diffs.layers(element))[0].blob == layer.blob
    assert store.blobs.has(layer.blob)


async def test_two_who_export_the_same_pack_once(store: Store):
    element = await write(store, "", a=b"1" * 1_000_000)
    first, second = await asyncio.gather(store.diffs.layers(element), store.diffs.layers(element))
    assert first == second


async def test_the_layer_stays_when_the_diff_goes_and_the_other_way_round(store: Store):
    one, two = await write(store, "", a=b"1"), await write(store, "", b=b"2")
    [kept] = await store.diffs.layers(one)
    [gone] = await store.diffs.layers(two)
    await store.diffs.remove([one])
    await store.layers.remove(gone.chain_id)
    assert (store.layers.path(kept) / "a").read_bytes() == b"1"
    assert (Path(store.diffs.lower(two)[0]) / "b").read_bytes() == b"2"
    await store.diffs.remove([two, one, two])
    await store.layers.remove(kept.chain_id)
    await store.emptied()
    assert store.nothing_left()


async def test_layers_of_one_image_on_top_of_another_share_files_and_blobs(store: Store, base: Layer):
    other = await store.add(make_tar(member("other", b"x")))
    merged = f"layer:{base.chain_id} layer:{other.chain_id}"
    [_, top] = await store.diffs.layers(merged)
    assert (top.directory, top.blob, top.parent) == (other.directory, other.blob, base.chain_id)
    await store.layers.remove(other.chain_id)
    assert (store.layers.path(top) / "other").exists() and store.blobs.has(top.blob)


async def test_the_files_of_a_stack_stay_as_long_as_somebody_works_on_them(store: Store):
    element = await write(store, "", a=b"1")
    async with store.diffs.workspace(element) as space:
        await store.diffs.remove([element])
        assert (Path(space.lower[0]) / "a").exists()
    await store.emptied()
    assert store.nothing_left()
    with pytest.raises(NotFound):
        async with store.diffs.workspace(element):
            pass


async def test_a_clamp_changes_later_times_in_the_archive_and_the_layer_alone(store: Store):
    async with store.diffs.workspace("") as space:
        for name, seconds in (("old", 1000), ("new", 3000)):
            (space.upper / name).write_text(name)
            os.utime(space.upper / name, (seconds, seconds))
        element = await space.keep()
    [plain] = await store.diffs.layers(element)
    [clamped] = await store.diffs.layers(element, clamp=2000)
    assert plain.diff_id != clamped.diff_id and plain.directory != clamped.directory
    with tarfile.open(fileobj=io.BytesIO(await store.blobs.read(clamped.blob))) as archive:
        assert [(found.name, found.mtime) for found in archive] == [("new", 2000), ("old", 1000)]
    assert (store.layers.path(clamped) / "new").stat().st_mtime == 2000
    assert (store.layers.path(plain) / "new").stat().st_mtime == 3000
    assert await store.diffs.layers(element, clamp=2000) == [clamped]
    await store.diffs.remove([element])
    for layer in (plain, clamped):
        await store.layers.remove(layer.chain_id)
    await store.emptied()
    assert store.nothing_left()


async def test_after_a_power_cut_diffs_that_were_not_synced_are_gone(store: Store):
    synced = await write(store, "", a=b"1")
    await store.close()
    await store.open()
    lost = await write(store, synced, b=b"2")
    [*_, layer] = await store.diffs.layers(stack(synced, lost))
    await store.die()
    await store.open(power_held=False)
    await recover(store.layers, store.blobs)
    assert store.diffs.has(synced) and not store.diffs.has(lost)
    again = store.layers.get(layer.chain_id)
    assert again is not None and again.directory != layer.directory
    assert (store.layers.path(again) / "b").read_bytes() == b"2"
    await store.emptied()
    assert layer.directory not in store.directories()


async def test_after_a_crash_alone_all_diffs_are_there_and_nothing_else(store: Store):
    element = await write(store, "", a=b"1")
    async with store.diffs.workspace(element) as space:
        (space.upper / "half").touch()
        await store.die()
        await store.open(power_held=True)
        assert store.diffs.all() == [element]
        await store.emptied()
        assert store.directories() == [Path(store.diffs.lower(element)[0]).name]
        assert os.listdir(store.root / "layers/w") == []


async def test_a_diff_whose_directory_is_missing_is_forgotten(store: Store):
    element = await write(store, "", a=b"1")
    path = Path(store.diffs.lower(element)[0])
    await store.close()
    (path / "a").unlink()
    path.rmdir()
    await store.open()
    assert not store.diffs.has(element)


async def test_a_worker_that_dies_fails_the_export_and_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch):
    element = await write(store, "", a=b"1")
    monkeypatch.setattr("husk.storage.workers.handle.Worker.outcome", _nothing)
    with pytest.raises(SystemFault, match="packs"):
        await store.diffs.layers(element)
    assert os.listdir(store.root / "blobs/ingest") == os.listdir(store.root / "blobs/sha256") == []


async def _nothing(worker: object) -> None:
    return None


async def test_a_tree_of_2500_levels_and_odd_files_is_packed(store: Store):
    async with store.diffs.workspace("") as space:
        os.mkfifo(space.upper / "fifo")
        (space.upper / "out").symlink_to("/etc/passwd")
        deepen(space.upper)
        element = await space.keep()
    [layer] = await store.diffs.layers(element)
    with tarfile.open(store.blobs.path(layer.blob)) as archive:
        found = archive.getmembers()
    assert len(found) == 2502
    assert [(entry.name, entry.type) for entry in found[-2:]] == [("fifo", tarfile.FIFOTYPE), ("out", tarfile.SYMTYPE)]
    await store.diffs.remove([element])
    await store.layers.remove(layer.chain_id)
    await store.emptied()
    assert store.nothing_left()


async def test_a_diff_that_is_alone_can_be_reopened_and_is_another_one_then(store: Store):
    element = await write(store, "", kept=b"12345", changed=b"old")
    assert store.diffs.alone(element)
    async with store.diffs.reopened(element) as space:
        assert not store.diffs.has(element)
        (space.upper / "changed").write_bytes(b"new")
        again = await space.keep(8)
    assert again != element
    assert store.diffs.size(again) == 8
    (place,) = store.diffs.lower(again)
    assert sorted(os.listdir(place)) == ["changed", "kept"]


async def test_a_reopened_diff_that_is_not_kept_is_gone(store: Store):
    element = await write(store, "", file=b"x")
    place = Path(store.diffs.lower(element)[0])
    async with store.diffs.reopened(element):
        pass
    assert not place.exists()


async def test_a_diff_that_is_used_or_part_of_an_image_is_not_alone(store: Store):
    element = await write(store, "", file=b"x")
    async with store.diffs.held(element):
        assert not store.diffs.alone(element)
    assert store.diffs.alone(element)
    await store.diffs.layers(element)
    assert not store.diffs.alone(element)
    assert not store.diffs.alone("diff:missing")


async def test_a_layer_keeps_its_blob_though_another_diff_with_the_same_goes_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    elements = []
    for _ in range(2):
        async with store.diffs.workspace("") as space:
            elements.append(await space.keep(layered=True))  # nothing: its tar is the one of many steps
    commit = store.state.commit

    async def slow(*changes: Change, lazy: bool = False) -> None:
        if changes[0].kind == LAYER:
            monkeypatch.undo()
            await store.diffs.remove([elements[1]])
        await commit(*changes, lazy=lazy)

    monkeypatch.setattr(store.state, "commit", slow)
    [layer] = await store.diffs.layers(elements[0])
    assert not store.diffs.has(elements[1]) and store.blobs.has(layer.blob)


async def test_diffs_that_go_leave_the_blob_of_a_layer_that_comes_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    others, elements = [], []
    for number in range(6):
        async with store.diffs.workspace("") as space:
            (space.upper / str(number)).touch()
            others.append(await space.keep(layered=True))
    for _ in range(2):
        async with store.diffs.workspace("") as space:
            elements.append(await space.keep(layered=True))
    remove = store.blobs.remove
    made: list[Layer] = []

    async def slow(digest: str) -> None:
        await remove(digest)
        if not made:
            made.extend(await store.diffs.layers(elements[0]))

    monkeypatch.setattr(store.blobs, "remove", slow)
    await store.diffs.remove([*others, elements[1]])
    assert store.blobs.has(made[0].blob)


async def test_what_is_kept_for_somebody_who_has_gone_meanwhile_is_removed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is told to nobody: it would stay until the next start."""
    writing, goes_on = asyncio.Event(), asyncio.Event()
    commit = store.state.commit

    async def slow(*changes: Change, lazy: bool = False) -> None:
        writing.set()
        await goes_on.wait()
        await commit(*changes, lazy=lazy)

    monkeypatch.setattr(store.state, "commit", slow)
    keeping = soon(write(store, "", a=b"a"))
    await writing.wait()
    keeping.cancel()
    goes_on.set()
    await asyncio.wait([keeping])
    assert keeping.cancelled()
    assert store.diffs.all() == []
    await store.emptied()
    assert os.listdir(store.root / "layers/l") == []


async def test_a_diff_that_is_given_up_while_it_is_reopened_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    element = await write(store, "", a=b"a")
    removing = asyncio.Event()

    async def remove(names: object) -> None:
        removing.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(store.diffs, "remove", remove)
        reopening = soon(store.diffs.reopened(element).__aenter__())
        await removing.wait()
        reopening.cancel()
        await asyncio.wait([reopening])
    await store.diffs.remove([element])
    await store.emptied()
    assert os.listdir(store.root / "layers/l") == []
