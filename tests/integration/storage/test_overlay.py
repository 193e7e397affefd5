"""A container's root file system over real layers, and the layer that its changes make."""

import asyncio
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.errors import SystemFault
from husk.kernel.mount import bind, mount, mount_overlay, mounts_below, unmount
from husk.kernel.trees import remove_tree
from husk.runtime.assembly.root import ContainerRoot
from husk.storage.layers.store import DIFF_MEDIA_TYPE
from husk.storage.workers.diff import write_diff
from tests.support.layers import Store, directory, make_tar, member, symlink

CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[ContainerRoot]:
    root = ContainerRoot(tmp_path / "container")
    root.create()
    yield root
    root.remove()
    assert mounts_below(str(tmp_path)) == []


def names(path: Path) -> list[str]:
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


async def test_layers_show_through_and_whiteouts_hide(store: Store, root: ContainerRoot):
    base = await store.add(
        make_tar(
            directory("etc"), member("etc/a", b"1"), member("etc/b", b"1"), directory("var"), member("var/old", b"")
        )
    )
    top = await store.add(
        make_tar(member("etc/.wh.a"), member("etc/b", b"2"), member("var/.wh..wh..opq"), member("var/new", b"")),
        base.chain_id,
    )
    root.mount(store.layers.lower([base.chain_id, top.chain_id]))
    assert names(root.merged) == ["etc", "etc/b", "var", "var/new"]
    assert (root.merged / "etc/b").read_bytes() == b"2"


async def test_mounting_and_unmounting_may_be_repeated(store: Store, root: ContainerRoot):
    lower = store.layers.lower([(await store.add(make_tar(member("a", b"x")))).chain_id])
    root.mount(lower)
    root.mount(lower)
    assert mounts_below(str(root.merged)) == [str(root.merged)]
    (root.merged / "kept").write_text("kept")
    root.unmount()
    root.unmount()
    root.mount(lower)
    assert (root.merged / "kept").read_text() == "kept"


def test_an_image_without_layers_is_an_empty_root(root: ContainerRoot):
    root.mount([])
    assert os.listdir(root.merged) == []
    (root.merged / "file").write_bytes(b"x" * 1000)
    os.link(root.merged / "file", root.merged / "same")
    assert root.usage() == 1000


def test_removing_takes_along_what_is_mounted_inside(root: ContainerRoot):
    root.mount([])
    (root.merged / "proc").mkdir()
    mount("tmpfs", str(root.merged / "proc"), "tmpfs")
    root.remove()
    root.remove()
    assert not root.directory.exists()


async def test_the_root_directory_is_the_images_until_the_container_changes_it(store: Store, root: ContainerRoot):
    layer = await store.add(make_tar(directory("./", mode=0o711, uid=7, gid=8)))
    lower = store.layers.lower([layer.chain_id])
    root.mount(lower)
    status = root.merged.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o711, 7, 8)
    root.merged.chmod(0o700)
    root.unmount()
    root.mount(lower)
    assert stat.S_IMODE(root.merged.stat().st_mode) == 0o700


async def test_an_image_of_127_layers_in_a_directory_with_a_long_name_is_mounted(tmp_path: Path):
    store = Store(tmp_path / ("long" * 20))
    await store.open()
    unpacked = [await store.unpack(make_tar(member(f"f{number}", b""))) for number in range(3)]
    parent, chain = "", []
    for one in unpacked:
        parent = (await store.layers.commit(one, parent)).chain_id
        chain.append(parent)
    real = store.layers.lower(chain)
    copies = []
    for number in range(124):
        copy = Path(real[0]).parent / f"copy{number}"
        shutil.copytree(real[0], copy)
        copies.append(str(copy))
    root = ContainerRoot(tmp_path / "container")
    root.create()
    try:
        here = Path.cwd()
        root.mount(real + copies)
        assert Path.cwd() == here
        assert names(root.merged) == ["f0", "f1", "f2"]
    finally:
        root.remove()
        await store.close()


def test_directories_with_separators_in_their_names_can_be_mounted(tmp_path: Path):
    paths = [tmp_path / name for name in ("lo:wer,1", "lo\\wer:2", "up,p:er", "wo\\rk,", "target")]
    for path in paths:
        path.mkdir()
    (paths[0] / "one").touch()
    (paths[1] / "two").touch()
    one, two, upper, work, target = map(str, paths)
    mount_overlay([one, two], upper, work, target)
    try:
        assert names(paths[4]) == ["one", "two"]
        (paths[4] / "three").touch()
        assert names(paths[2]) == ["three"]
    finally:
        unmount(target)


def test_bind_mounts_can_be_read_only(tmp_path: Path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    bind(str(source), str(target), readonly=True)
    try:
        with pytest.raises(OSError, match="Read-only"):
            (target / "file").touch()
        (source / "file").touch()
        assert names(target) == ["file"]
        with pytest.raises(OSError, match="busy"):
            remove_tree(tmp_path)
    finally:
        unmount(str(target))
        unmount(str(target))
    unmount(str(tmp_path / "nowhere"))


async def test_a_containers_changes_become_a_layer_that_makes_the_same_root(
    store: Store, root: ContainerRoot, tmp_path: Path
):
    base = await store.add(
        make_tar(
            directory("etc"), member("etc/gone", b"1"), member("etc/changed", b"1"), directory("dir"),
            member("dir/old", b""), directory("moved"), member("moved/file", b"m"), symlink("link", "etc"),
        )
    )  # fmt: skip
    root.mount(store.layers.lower([base.chain_id]))
    merged = root.merged
    (merged / "etc/gone").unlink()
    (merged / "etc/changed").write_bytes(b"22")
    shutil.rmtree(merged / "dir")
    (merged / "dir").mkdir(mode=0o700)
    (merged / "dir/new").write_bytes(b"new")
    os.chown(merged / "dir/new", 1000, 1001)
    os.chmod(merged / "dir/new", 0o4755)
    os.setxattr(merged / "dir/new", "security.capability", CAPABILITY)
    os.setxattr(merged / "dir/new", "user.binary", b"\xff\x00=\n")
    os.link(merged / "dir/new", merged / "dir/same")
    (merged / "link").unlink()
    os.symlink("nowhere", merged / "link")
    os.mkfifo(merged / "pipe")
    os.mknod(merged / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (merged / ("long" * 60)).write_bytes(b"long")
    (merged / os.fsdecode(b"caf\xe9")).write_bytes(b"latin")
    shutil.move(merged / "moved", merged / "elsewhere")
    os.mknod(merged / "socket", 0o600 | stat.S_IFSOCK)
    expected = {name for name in names(merged) if name != "socket"}

    unpacked = await store.layers.ingest_diff(root.upper)
    assert unpacked.media_type == DIFF_MEDIA_TYPE
    top = await store.layers.commit(unpacked, base.chain_id)
    assert (top.blob, top.blob_size) == (top.diff_id, store.blobs.size(top.diff_id))

    again = ContainerRoot(tmp_path / "again")
    again.create()
    again.mount(store.layers.lower([base.chain_id, top.chain_id]))
    try:
        assert set(names(again.merged)) == expected
        new = again.merged / "dir/new"
        status = new.stat()
        assert new.read_bytes() == b"new"
        assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o4755, 1000, 1001)
        assert status.st_ino == (again.merged / "dir/same").stat().st_ino
        assert os.getxattr(new, "security.capability") == CAPABILITY
        assert os.getxattr(new, "user.binary") == b"\xff\x00=\n"
        assert stat.S_IMODE((again.merged / "dir").stat().st_mode) == 0o700
        assert os.readlink(again.merged / "link") == "nowhere"
        assert (again.merged / "null").stat().st_rdev == os.makedev(1, 3)
        assert (again.merged / "elsewhere/file").read_bytes() == b"m"
        assert (again.merged / "etc/changed").read_bytes() == b"22"
    finally:
        again.remove()


async def test_the_same_changes_make_the_same_layer(store: Store, root: ContainerRoot):
    root.mount([])
    for name in ("b", "a", "d/c", "d/a"):
        (root.merged / name).parent.mkdir(exist_ok=True)
        (root.merged / name).write_text(name)
    one, two = await asyncio.gather(*(store.layers.ingest_diff(root.upper) for _ in range(2)))
    assert one.diff_id == two.diff_id
    with tarfile.open(store.root / "blobs/ingest" / one.blob_file.name) as archive:
        assert archive.getnames() == ["a", "b", "d", "d/a", "d/c"]


async def test_a_diff_of_a_directory_that_is_not_there_fails_and_leaves_nothing(store: Store, tmp_path: Path):
    with pytest.raises(SystemFault, match="reading the changes"):
        await store.layers.ingest_diff(tmp_path / "nothing")
    await store.emptied()
    assert store.nothing_left()


def test_a_file_that_shrinks_while_it_is_read_does_not_damage_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_bytes(b"x" * 100)
    (tmp_path / "next").write_bytes(b"next")
    really = os.open

    def shrink(path: bytes, flags: int, dir_fd: int | None = None) -> int:
        if path == b"file":
            os.truncate(path, 10)
        return really(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr("husk.storage.workers.diff.os.open", shrink)
    out = io.BytesIO()
    write_diff(tmp_path, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        contents = [archive.extractfile(name).read() for name in archive.getnames()]  # type: ignore[union-attr]
    assert contents == [b"x" * 10 + bytes(90), b"next"]
