"""A few small files go in and out without a worker, exactly as with one; everything else is left to the worker."""

import fcntl
import io
import os
import tarfile
from pathlib import Path

import pytest

from husk.storage.small import fill_small, put_small, read_small
from husk.storage.tar.members import tar_to
from husk.storage.workers.pack import XATTRS, add_all, describe, source
from tests.support.tars import files_of

MOUNTS = ["/data", "/etc/hosts", "/not/yet/made"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "data").mkdir()
    (root / "etc/hosts").write_text("hosts")
    (root / "etc/file").write_text("content")
    (root / "etc/link").symlink_to("file")
    (root / "out").symlink_to(tmp_path)
    (tmp_path / "secret").write_text("secret")
    return root


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def file_named(name: str, data: bytes = b"new", **fields: object) -> bytes:
    member = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(member, field, value)
    return archive((member, data))


def link_to(target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo("x")
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member


def directory_named(name: str, mode: int = 0o755, mtime: int = 1_000_000_000) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.mtime, member.uid = tarfile.DIRTYPE, mode, mtime, 7
    return member, b""


def as_the_worker_packs(root: Path, path: str) -> bytes:
    out = io.BytesIO()
    top, prefix = source(f"{root}{path}", directory=True)
    with tar_to(out, XATTRS) as members:
        add_all(members, top, prefix)
    return out.getvalue()


def test_a_small_file_as_a_tar(root: Path):
    os.chmod(root / "etc/file", 0o4751)
    os.utime(root / "etc/file", (1_000_000_000, 1_000_000_000))
    found = read_small(root, MOUNTS, "/etc/file")
    assert found is not None
    status, data = found
    assert (status.name, status.size, status.link) == ("file", 7, "")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        (member,) = tar.getmembers()
    assert files_of(data) == {"file": b"content"}
    assert (member.name, member.mode, member.mtime, member.uid) == ("file", 0o4751, 1_000_000_000, 0)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1 << 16])
def test_sizes(root: Path, size: int):
    (root / "sized").write_bytes(b"x" * size)
    found = read_small(root, [], "/sized")
    assert found is not None
    assert len(found[1]) % 512 == 0
    with tarfile.open(fileobj=io.BytesIO(found[1])) as tar:
        assert [member.size for member in tar] == [size]


@pytest.fixture
def tree(root: Path) -> Path:
    """A directory with all that is simple."""
    (root / "tree/b/deep").mkdir(parents=True)
    (root / "tree/a").write_text("a")
    (root / "tree/b/deep/\udcff").write_text("a name that is no text")
    (root / "tree/b/empty").touch()
    (root / "tree/c").mkdir(mode=0o1770)
    os.chown(root / "tree/c", 1, 2)
    return root / "tree"


@pytest.mark.parametrize("path", ["/tree", "/tree/", "/tree/.", "/tree/b/deep", "/tree/c"])
def test_a_directory_is_packed_as_a_worker_packs_it(root: Path, tree: Path, path: str):
    found = read_small(root, MOUNTS, path)
    assert found is not None
    assert found[1] == as_the_worker_packs(root, path)
    assert found[0] == describe(f"{root}{path}")


@pytest.mark.parametrize("odd", ["link", "pipe", "hard link", "large", "together large", "many", "mount"])
def test_a_directory_with_something_else_in_it_is_the_workers(root: Path, tree: Path, odd: str):
    match odd:
        case "link":
            (tree / "b/link").symlink_to("a")
        case "pipe":
            os.mkfifo(tree / "b/pipe")
        case "hard link":
            os.link(tree / "a", tree / "b/other")
        case "large":
            (tree / "b/large").write_bytes(bytes((1 << 16) + 1))
        case "together large":
            for number in range(5):
                (tree / f"b/{number}").write_bytes(bytes(1 << 14))
        case "many":
            for number in range(100):
                (tree / f"b/{number}").touch()
    assert read_small(root, ["/tree/b/mounted"] if odd == "mount" else [], "/tree") is None


def test_a_file_with_other_names_goes_alone(root: Path):
    os.link(root / "etc/file", root / "other")
    assert read_small(root, [], "/etc/file") is not None


@pytest.mark.parametrize(
    "path", ["/etc", "/etc/link", "/etc/hosts", "/out/secret", "/data/x", "/etc/file/", "/not/yet"]
)
def test_what_a_worker_must_read(root: Path, path: str):
    assert read_small(root, MOUNTS, path) is None


def test_a_large_file_and_one_with_capabilities_are_the_workers(root: Path):
    (root / "large").write_bytes(bytes((1 << 16) + 1))
    assert read_small(root, [], "/large") is None
    os.setxattr(root / "etc/file", "security.capability", bytes.fromhex("0100000202000000000000000000000000000000"))
    assert read_small(root, [], "/etc/file") is None


def test_nothing_to_read(root: Path):
    with pytest.raises(FileNotFoundError):
        read_small(root, MOUNTS, "/etc/none")


def test_nobody_waits_for_a_file_that_somebody_has_a_lease_on(root: Path):
    with (root / "etc/file").open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(file, fcntl.F_SETSIG, 23)  # SIGURG, which nobody minds
        assert read_small(root, [], "/etc/file") is None
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def test_a_file_goes_in_with_all_that_the_archive_says(root: Path):
    assert put_small(root, MOUNTS, "/etc", file_named("./new", mode=0o6711, uid=7, gid=8, mtime=1_000_000_000))
    status = (root / "etc/new").stat()
    assert (root / "etc/new").read_bytes() == b"new"
    assert (status.st_mode & 0o7777, status.st_uid, status.st_gid) == (0o6711, 7, 8)
    assert status.st_mtime == 1_000_000_000


def test_a_file_goes_to_the_owner_that_is_wanted(root: Path):
    assert put_small(root, [], "/", file_named("new", uid=7, gid=8), [1, 2])
    assert ((root / "new").stat().st_uid, (root / "new").stat().st_gid) == (1, 2)


def test_a_file_replaces_another_and_leaves_its_other_names_alone(root: Path):
    os.link(root / "etc/file", root / "other")
    assert put_small(root, MOUNTS, "/etc/.", file_named("file"))
    assert (root / "etc/file").read_bytes() == b"new"
    assert (root / "other").read_bytes() == b"content"


def test_modes_do_not_depend_on_the_directory_nor_on_the_umask(root: Path):
    os.chmod(root / "etc", 0o2755)
    os.chown(root / "etc", 0, 55)
    before = os.umask(0o077)
    try:
        assert put_small(root, [], "/etc", file_named("new", mode=0o666))
    finally:
        os.umask(before)
    assert ((root / "etc/new").stat().st_mode & 0o7777, (root / "etc/new").stat().st_gid) == (0o666, 0)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/etc", "link"), ("/", "etc"), ("/etc", "hosts"), ("/", "not"), ("/data", "x"), ("/etc/link", "x"),
        ("/out", "x"), ("/etc/file", "x"), ("/", "deep/x"), ("/not/yet", "x"), ("/", "."),
    ],
)  # fmt: skip
def test_what_a_worker_must_put(root: Path, path: str, name: str):
    before = sorted(root.parent.rglob("*"))
    assert not put_small(root, MOUNTS, path, file_named(name))
    assert sorted(root.parent.rglob("*")) == before
    assert (root / "etc/file").read_text() == "content"


@pytest.mark.parametrize("name", ["../x", "/../x", "a/../../x"])
def test_a_name_that_leads_out_is_the_workers_to_refuse(root: Path, name: str):
    assert not put_small(root, [], "/etc", file_named(name))


def test_a_name_from_the_root_is_below_the_directory(root: Path):
    assert put_small(root, [], "/etc", file_named("/x"))
    assert (root / "etc/x").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"junk" * 200, bytes(1024), archive(), file_named("x", type=tarfile.DIRTYPE),
        file_named("x", data=b"x" * 90)[:600],
        file_named("x", type=tarfile.SYMTYPE, linkname="/secret"), file_named("x", type=tarfile.FIFOTYPE),
        archive(*((tarfile.TarInfo(f"x{n}"), b"") for n in range(101))), file_named("x", data=b"x" * 600)[:1024],
        archive((tarfile.TarInfo("x"), b"x"), (link_to("/secret"), b"")),
        file_named("x", pax_headers={"SCHILY.xattr.user.a": "b"}), file_named("x", uid=1 << 40),
        b"\x1f\x8b" + bytes(600),
    ],
)  # fmt: skip
def test_other_archives_are_the_workers(root: Path, data: bytes):
    before = sorted(root.iterdir())
    assert not put_small(root, [], "/", data)
    assert [path for path in sorted(root.iterdir()) if path.name != "x"] == before


def test_no_directory_to_put_it_into(root: Path):
    with pytest.raises(FileNotFoundError):
        put_small(root, MOUNTS, "/none", file_named("x"))


@pytest.mark.parametrize("name", ["dir/x", "out/x", "./a/../b/x"])
def test_a_file_below_the_directory_is_the_workers(root: Path, name: str):
    before = sorted(root.parent.rglob("*"))
    assert not put_small(root, [], "/", file_named(name))
    assert sorted(root.parent.rglob("*")) == before


def test_a_directory_with_its_files_is_the_workers(root: Path):
    assert not put_small(root, [], "/", archive(directory_named("new"), (tarfile.TarInfo("new/a"), b"a")))
    assert not (root / "new").exists()


def test_of_two_files_none_is_put(root: Path):
    assert not put_small(root, [], "/", archive((tarfile.TarInfo("a"), b"a"), (tarfile.TarInfo("b"), b"b")))
    assert not (root / "a").exists()


def test_a_directory_is_filled_with_the_files_of_a_small_archive(tmp_path):
    one, other = tarfile.TarInfo("Dockerfile"), tarfile.TarInfo("./other")
    one.mode, one.mtime = 0o640, 7
    assert fill_small(tmp_path, archive((one, b"FROM x"), (other, b""))) == 6
    assert (tmp_path / "Dockerfile").read_bytes() == b"FROM x"
    status = (tmp_path / "Dockerfile").stat()
    assert (status.st_mode & 0o7777, status.st_uid, status.st_mtime) == (0o640, 0, 7)
    assert sorted(os.listdir(tmp_path)) == ["Dockerfile", "other"]
    assert fill_small(tmp_path, archive()) == 0


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member, b""


@pytest.mark.parametrize(
    "given",
    [
        archive(_member("link", tarfile.SYMTYPE, "/etc/passwd")),
        archive(_member("directory", tarfile.DIRTYPE)),
        archive(_member("directory/file")),
        archive(_member("../file")),
        archive(_member("twice"), _member("twice")),
        archive(*(_member(str(number)) for number in range(101))),
        archive(_member("no end"))[:512],
        b"no archive",
        b"",
    ],
)
def test_nothing_is_filled_with_what_a_worker_has_to_look_at(tmp_path, given):
    assert fill_small(tmp_path, given) is None
    assert os.listdir(tmp_path) == []


def test_a_small_archive_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "Dockerfile").mkdir()
    with pytest.raises(OSError, match="cannot be written"):
        fill_small(tmp_path, archive(_member("Dockerfile")))
