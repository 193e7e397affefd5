"""The files of an archive on disk, through the real worker; also of an archive that means harm."""

import os
import stat
import tarfile
from pathlib import Path

import pytest

from husk.errors import InvalidParameter
from husk.kernel.process import run
from tests.support.layers import Store, directory, hard_link, make_tar, member, symlink

CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")


async def test_files_keep_content_owner_mode_and_time(store: Store):
    top = await store.tree(
        make_tar(
            directory("etc", mode=0o2750, uid=5, gid=6, mtime=1000),
            member("etc/file", b"content", mode=0o640, uid=1000, gid=2000, mtime=1234567890),
            member("etc/tool", b"#!", mode=0o6755, uid=7, gid=8),
        )
    )
    file, tool, etc = (os.stat(top / name) for name in ("etc/file", "etc/tool", "etc"))
    assert (top / "etc/file").read_bytes() == b"content"
    assert (stat.S_IMODE(file.st_mode), file.st_uid, file.st_gid, file.st_mtime) == (0o640, 1000, 2000, 1234567890)
    assert (stat.S_IMODE(tool.st_mode), tool.st_uid, tool.st_gid) == (0o6755, 7, 8)
    assert (stat.S_IMODE(etc.st_mode), etc.st_uid, etc.st_gid, etc.st_mtime) == (0o2750, 5, 6, 1000)


async def test_files_in_a_setgid_directory_keep_their_own_group(store: Store):
    top = await store.tree(make_tar(directory("d", mode=0o2777, gid=50), member("d/f", b"x", gid=0)))
    assert os.stat(top / "d/f").st_gid == 0


async def test_links_devices_and_pipes(store: Store):
    top = await store.tree(
        make_tar(
            member("file", b"x"),
            hard_link("same", "file"),
            symlink("soft", "/etc/passwd"),
            hard_link("soft2", "soft"),
            member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3, mode=0o666),
            member("disk", type=tarfile.BLKTYPE, devmajor=8, devminor=1, mode=0o660, gid=6),
            member("pipe", type=tarfile.FIFOTYPE, mode=0o622),
        )
    )
    assert os.stat(top / "file").st_ino == os.stat(top / "same").st_ino
    assert os.readlink(top / "soft") == "/etc/passwd"
    assert os.lstat(top / "soft").st_ino == os.lstat(top / "soft2").st_ino
    null, disk, pipe = (os.lstat(top / name) for name in ("null", "disk", "pipe"))
    assert (stat.S_ISCHR(null.st_mode), null.st_rdev) == (True, os.makedev(1, 3))
    assert (stat.S_ISBLK(disk.st_mode), disk.st_rdev, disk.st_gid) == (True, os.makedev(8, 1), 6)
    assert stat.S_ISFIFO(pipe.st_mode)
    assert [stat.S_IMODE(status.st_mode) for status in (null, disk, pipe)] == [0o666, 0o660, 0o622]


async def test_extended_attributes_and_capabilities_survive_the_change_of_owner(store: Store):
    xattrs = {"user.note": b"hello", "security.capability": CAPABILITY}
    top = await store.tree(make_tar(member("ping", b"x", mode=0o755, uid=9, xattrs=xattrs)))
    assert os.getxattr(top / "ping", "user.note") == b"hello"
    assert os.getxattr(top / "ping", "security.capability") == CAPABILITY


async def test_attributes_that_a_file_cannot_have_are_left_out(store: Store):
    info, _ = member("link", xattrs={"user.note": b"x"}, type=tarfile.SYMTYPE, linkname="x")
    top = await store.tree(make_tar((info, b"")))
    assert os.readlink(top / "link") == "x"


async def test_overlay_attributes_in_an_archive_are_ignored(store: Store):
    xattrs = {"trusted.overlay.redirect": b"/etc", "trusted.overlay.opaque": b"y", "trusted.overlay.metacopy": b""}
    top = await store.tree(make_tar(directory("d", xattrs=xattrs), member("f", b"x", xattrs=xattrs)))
    assert not [name for path in ("d", "f") for name in os.listxattr(top / path) if "overlay" in name]


async def test_whiteouts_become_what_overlayfs_knows(store: Store):
    layer = await store.add(make_tar(member("dir/.wh.gone"), member("clear/.wh..wh..opq"), member(".wh..wh.plnk")))
    top = store.layers.path(layer)
    gone = os.lstat(top / "dir/gone")
    assert (stat.S_ISCHR(gone.st_mode), gone.st_rdev) == (True, 0)
    assert os.getxattr(top / "clear", "trusted.overlay.opaque") == b"y"
    assert sorted(os.listdir(top)) == ["clear", "dir"]


async def test_a_whiteout_hides_only_what_is_below_and_not_its_own_layer(store: Store):
    archive = make_tar(
        member("file", b"new"), member(".wh.file"), directory("d"), member("d/f", b"new"), member(".wh.d"),
        member(".wh.e"), member("e/f", b"new"), member(".wh.g"), directory("g"),
    )  # fmt: skip
    top = await store.tree(archive)
    assert (top / "file").read_bytes() == b"new"
    for name in ("d", "e", "g"):
        assert os.getxattr(top / name, "trusted.overlay.opaque") == b"y"
    assert (top / "e/f").read_bytes() == b"new"


@pytest.mark.parametrize("name", [".wh.", ".wh..", "a/.wh..."])
async def test_a_whiteout_without_a_proper_name_is_refused(store: Store, name: str):
    with pytest.raises(InvalidParameter, match="whiteout"):
        await store.unpack(make_tar(member(name)))


async def test_a_later_entry_replaces_an_earlier_one_of_any_kind(store: Store):
    layer = await store.add(
        make_tar(
            directory("a"), directory("a/b"), member("a/b/c", b"lost"), member("a", b"file"),
            member("b", b"lost"), directory("b"), member("b/c", b"x"),
            symlink("c", "b"), member("c", b"own"),
            member("d", b"first"), member("d", b"2nd"),
            symlink("e", "b"), directory("e"), member("e/new", b"x"),
            member("f", type=tarfile.CHRTYPE, devmajor=1, devminor=3), member("f", b"plain"),
        )
    )  # fmt: skip
    top = store.layers.path(layer)
    assert (top / "a").read_bytes() == b"file"
    assert (top / "b/c").read_bytes() == b"x"
    assert (top / "c").read_bytes() == b"own"
    assert (top / "d").read_bytes() == b"2nd"
    assert os.listdir(top / "e") == ["new"]
    assert (top / "f").read_bytes() == b"plain"
    assert layer.size == len(b"filexown2ndxplain")


async def test_missing_parents_are_made(store: Store):
    top = await store.tree(make_tar(member("a/b/c", b"x")))
    assert stat.S_IMODE(os.stat(top / "a/b").st_mode) == 0o755


async def test_a_sparse_file_takes_no_room_for_its_holes(store: Store, tmp_path: Path):
    source = tmp_path / "sparse"
    with source.open("wb") as file:
        file.seek(50_000_000)
        file.write(b"end")
        file.truncate(60_000_000)
    done = await run(["tar", "c", "--sparse", "-C", str(tmp_path), "sparse"])
    layer = await store.add(done.stdout)
    made = store.layers.path(layer) / "sparse"
    assert made.read_bytes() == source.read_bytes()
    assert made.stat().st_blocks * 512 < 1_000_000
    assert layer.size == 60_000_000


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/../evil", ".."])
async def test_a_name_that_leaves_the_root_is_refused(store: Store, name: str):
    with pytest.raises(InvalidParameter, match="outside"):
        await store.unpack(make_tar(member(name, b"x")))
    await store.emptied()
    assert store.nothing_left()


async def test_an_absolute_name_stays_inside(store: Store):
    top = await store.tree(make_tar(member("/etc/husk-evil", b"x")))
    assert (top / "etc/husk-evil").exists()
    assert "husk-evil" not in os.listdir("/etc")


async def test_a_link_to_the_outside_leads_nowhere(store: Store, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    archive = make_tar(symlink("out", str(tmp_path)), directory(str(tmp_path)), member("out/secret", b"overwritten"))
    top = await store.tree(archive)
    assert secret.read_text() == "secret"
    assert (top / str(tmp_path)[1:] / "secret").read_bytes() == b"overwritten"


async def test_a_link_upwards_ends_at_the_root(store: Store):
    archive = make_tar(symlink("up", "../" * 40), member("up/file", b"x"))
    top = await store.tree(archive)
    assert sorted(os.listdir(top)) == ["file", "up"]


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../../../../../etc/passwd", "nothing"])
async def test_a_hard_link_to_what_the_layer_does_not_have_is_refused(store: Store, target: str):
    with pytest.raises(InvalidParameter, match=r"which is not there|outside"):
        await store.unpack(make_tar(hard_link("link", target)))


async def test_a_hard_link_through_a_link_outside_is_refused(store: Store):
    with pytest.raises(InvalidParameter, match="cannot be made"):
        await store.unpack(make_tar(symlink("etc", "/etc"), hard_link("shadow", "etc/shadow")))


async def test_nothing_is_written_into_a_device(store: Store):
    top = await store.tree(
        make_tar(
            member("dev", type=tarfile.CHRTYPE, devmajor=1, devminor=1, mode=0o666),
            hard_link("alias", "dev"),
            member("alias", b"plain"),
        )
    )
    assert (top / "alias").read_bytes() == b"plain"
    assert stat.S_ISCHR(os.lstat(top / "dev").st_mode)


async def test_a_file_in_the_place_of_a_directory_is_an_error(store: Store):
    with pytest.raises(InvalidParameter, match="file/below cannot be made: Not a directory"):
        await store.unpack(make_tar(member("file", b"x"), member("file/below", b"x")))


async def test_a_directory_behind_a_replaced_link_is_left_alone(store: Store):
    archive = make_tar(
        directory("real"), symlink("via", "real"), directory("via/sub", mode=0o700), directory("via"), member("x", b"")
    )
    top = await store.tree(archive)
    assert os.listdir(top / "real") == ["sub"]
    assert os.listdir(top / "via") == []


async def test_modules_in_the_layer_are_never_imported(store: Store):
    """A damaged stream makes Python look for codecs and the like; it must not find them in the layer."""
    bait = b"open('/imported', 'w')\n"
    paths = [f"usr/lib/python3.11/{name}" for name in ("gzip.py", "traceback.py", "encodings/idna.py", "linecache.py")]
    archive = make_tar(*(member(path, bait) for path in paths), member("a" * 5000, b"x"))
    with pytest.raises(InvalidParameter, match="File name too long"):
        await store.unpack(archive)


async def test_impossible_owners_are_refused(store: Store):
    with pytest.raises(InvalidParameter, match="number that is too large"):
        await store.unpack(make_tar(member("f", b"x", uid=1 << 40)))
    with pytest.raises(InvalidParameter, match="number that is too large"):
        await store.unpack(make_tar(directory("d", uid=1 << 40)))


async def test_impossible_times_are_brought_into_range(store: Store):
    info, data = member("f", b"x")
    info.pax_headers = {"mtime": str(10**18)}
    top = await store.tree(make_tar((info, data)))
    assert os.stat(top / "f").st_mtime >= 2**31


async def test_directories_that_come_again_look_as_they_were_told_last(store: Store):
    """A word about a directory that was cleared away is no longer true, nor is one about its files."""
    top = await store.tree(
        make_tar(
            directory("a", mode=0o700),
            directory("a/b", mode=0o700),
            directory("a/b/c", mode=0o701),
            directory("ab", mode=0o711),
            directory("a.b", mode=0o712),
            member("a", b"instead"),
            directory("a", mode=0o750),
            member("a/b/file", b"x"),
            directory("a/b/c", mode=0o702),
            member("a/b/c", b"instead"),
            directory("a/b/c", mode=0o703),
            directory("a/d", mode=0o704),
        )
    )
    modes = {name: stat.S_IMODE(os.stat(top / name).st_mode) for name in ("a", "a/b", "a/b/c", "a/d", "ab", "a.b")}
    assert modes == {"a": 0o750, "a/b": 0o755, "a/b/c": 0o703, "a/d": 0o704, "ab": 0o711, "a.b": 0o712}


async def test_a_deep_layer_is_unpacked_and_removed(store: Store):
    deep = "d/" * 2000
    layer = await store.add(make_tar(directory(deep), member(deep + "f", b"x"), member("d", b"instead")))
    assert (store.layers.path(layer) / "d").read_bytes() == b"instead"
    other = await store.add(make_tar(directory(deep)))
    await store.layers.remove(other.chain_id)
    await store.emptied()
    assert not os.listdir(store.root / "layers/trash")
