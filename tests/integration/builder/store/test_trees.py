"""Work of a build on files: copied, made, linked and removed as BuildKit does it."""

import asyncio
import fcntl
import io
import os
import signal
import socket
import stat
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from husk.aio.tasks import Tasks
from husk.builder.store.file_actions import FileAction, MakeDirectory, MakeFile, Owner, Remove, Symlink
from husk.errors import InvalidParameter, NotFound, SystemFault
from tests.support.layers import Store
from tests.support.trees import Action, Forest, copy, deepen, do
from tests.support.workers import workers_of


@pytest.fixture
async def forest(store: Store, tmp_path: Path) -> AsyncIterator[Forest]:
    yield Forest(store, tmp_path / "shown")
    assert os.listdir(tmp_path / "layers/w") == []


# --- where copies go


async def test_the_content_of_a_directory_is_merged_into_one_that_is_there(forest: Forest):
    target = await forest.files(dst__old="old", dst__same="before")
    source = await forest.files(src__same="after", src__sub__new="new")
    stack = await do(forest, copy("/src", "/dst"), target, source)
    assert forest.listing(stack) == {
        "dst/": "", "dst/old": "old", "dst/same": "after", "dst/sub/": "", "dst/sub/new": "new",
    }  # fmt: skip
    assert stack.startswith(target + " ") and len(stack.split()) == 2


@pytest.mark.parametrize(
    ("destination", "found"),
    [("/f", "f"), ("/new/", "new/a"), ("/there", "there/a"), ("/there/x", "there/x"), ("/x/y/z", "x/y/z"), ("/.", "a")],
)
async def test_where_a_file_goes(forest: Forest, destination: str, found: str):
    target = await forest.files(there__old="old")
    stack = await do(forest, copy("/a", destination), target, await forest.files(a="text"))
    assert forest.listing(stack)[found] == "text"


async def test_a_directory_itself_goes_into_one_that_is_there(forest: Forest):
    source = await forest.files(src__a="1")
    target = await forest.files(dst__old="old")
    stack = await do(forest, copy("/src", "/dst", contents_only=False), target, source)
    assert forest.listing(stack) == {"dst/": "", "dst/old": "old", "dst/src/": "", "dst/src/a": "1"}
    fresh = await do(forest, copy("/src", "/dst", contents_only=False), "", source)
    assert forest.listing(fresh) == {"dst/": "", "dst/a": "1"}


async def test_a_destination_whose_directory_is_missing(forest: Forest):
    with pytest.raises(NotFound, match="failed to stat /no/where"):
        await do(forest, copy("/a", "/no/where", make_parents=False), "", await forest.files(a="1"))


async def test_links_at_the_destination_are_followed_within_it(forest: Forest):
    target = await forest.plant(lambda root: (root / "link").symlink_to("/real/../dir"))
    stack = await do(forest, copy("/a", "/link/"), target, await forest.files(a="1"))
    assert forest.listing(stack) == {"link": "-> /real/../dir", "dir/": "", "dir/a": "1"}


# --- what is copied


async def test_what_is_missing_is_named_as_buildkit_names_it(forest: Forest):
    source = await forest.files(a="1")
    with pytest.raises(NotFound, match=r'^"/missing": not found$'):
        await do(forest, copy("/missing", "/"), "", source)
    with pytest.raises(NotFound, match=r"^/\*.txt not found$"):
        await do(forest, copy("/*.txt", "/"), "", source)
    assert forest.listing(await do(forest, copy("/*.txt", "/", may_match_nothing=True), "", source)) == {}


async def test_wildcards_stand_for_names_in_order(forest: Forest):
    source = await forest.files(a__x1="1", a__x2="2", a__y="3", b__x3="4")
    stack = await do(forest, copy("/*/x[12]", "/dst/"), "", source)
    assert forest.listing(stack) == {"dst/": "", "dst/x1": "1", "dst/x2": "2"}
    stack = await do(forest, copy("/?", "/dst"), "", source)
    assert set(forest.listing(stack)) == {"dst/", "dst/x1", "dst/x2", "dst/x3", "dst/y"}


async def test_a_link_is_followed_or_copied(forest: Forest):
    def fill(root: Path) -> None:
        (root / "real").mkdir()
        (root / "real/file").write_text("x")
        (root / "link").symlink_to("/real")
        (root / "real/inner").symlink_to("file")

    source = await forest.plant(fill)
    followed = await do(forest, copy("/link", "/dst"), "", source)
    assert forest.listing(followed) == {"dst/": "", "dst/file": "x", "dst/inner": "-> file"}
    kept = await do(forest, copy("/link", "/dst", follow_links=False), "", source)
    assert forest.listing(kept) == {"dst": "-> /real"}


async def test_no_link_leads_out_of_the_source(forest: Forest):
    source = await forest.plant(lambda root: (root / "passwd").symlink_to("../../../../etc/passwd"))
    with pytest.raises(NotFound):
        await do(forest, copy("/passwd", "/"), "", source)


async def test_patterns_choose_what_is_copied(forest: Forest):
    source = await forest.files(a__keep__x="1", a__drop__x="2", a__drop__y="3", b="4")
    left = await do(forest, copy("/", "/dst", exclude=["a/drop", "!a/drop/y"]), "", source)
    assert [name for name in forest.listing(left) if not name.endswith("/")] == [
        "dst/a/drop/y",
        "dst/a/keep/x",
        "dst/b",
    ]
    chosen = await do(forest, copy("/", "/dst", include=["a/*/x"], exclude=["**/drop"]), "", source)
    assert forest.listing(chosen) == {"dst/": "", "dst/a/": "", "dst/a/keep/": "", "dst/a/keep/x": "1"}


async def test_directories_that_no_pattern_names_look_like_their_source(forest: Forest):
    def fill(root: Path) -> None:
        (root / "a/b").mkdir(parents=True)
        (root / "a/b/c").touch()
        os.chown(root / "a", 5, 6)
        (root / "a").chmod(0o750)
        for path in ("a/b", "a"):
            os.utime(root / path, ns=(0, 1_000_000_000))

    stack = await do(forest, copy("/", "/", include=["a/b/c"]), "", await forest.plant(fill))
    assert (forest.mode(stack, "a"), forest.owner(stack, "a")) == (0o750, (5, 6))
    assert forest.status(stack, "a").st_mtime == 1


async def test_what_is_in_the_way(forest: Forest):
    target = await forest.files(x__y="old", f="old")
    source = await forest.files(f__new="1", x="2")
    with pytest.raises(InvalidParameter, match="cannot copy to non-directory: /f"):
        await do(forest, copy("/", "/"), target, source)
    with pytest.raises(InvalidParameter, match="cannot replace to directory /x with file"):
        await do(forest, copy("/", "/", exclude=["f"]), target, source)
    stack = await do(forest, copy("/", "/", replace=True), target, source)
    assert forest.listing(stack) == {"f/": "", "f/new": "1", "x": "2"}


# --- what copies look like


def hostile(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/file").write_bytes(b"x" * 10_000)
    os.link(root / "d/file", root / "d/same")
    os.setxattr(root / "d/file", "user.note", b"hello")
    (root / "d/file").chmod(0o4755)
    os.chown(root / "d/file", 12, 34)
    os.chmod(root / "d/file", 0o4755)
    os.utime(root / "d/file", ns=(1, 1_234_567_890_123_456_789))
    os.mkfifo(root / "d/fifo", 0o640)
    os.mknod(root / "d/device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    (root / "d/out").symlink_to("/etc/passwd")
    with open(root / "d/sparse", "wb") as file:
        file.truncate(50_000_000)
        file.seek(20_000_000)
        file.write(b"data")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(root / "d")
        listener.bind("socket")
        os.chdir(here)
    os.utime(root / "d", ns=(0, 5_000_000_000))
    (root / "d").chmod(0o711)


async def test_files_keep_what_they_are(forest: Forest):
    stack = await do(forest, copy("/", "/copy", contents_only=False), "", await forest.plant(hostile))
    with forest.shown(stack) as root:
        top = root / "copy/d"
        file = (top / "file").stat()
        assert (stat.S_IMODE(file.st_mode), file.st_uid, file.st_gid, file.st_nlink) == (0o4755, 12, 34, 2)
        assert file.st_mtime_ns == 1_234_567_890_123_456_789
        assert os.getxattr(top / "file", "user.note") == b"hello"
        assert (top / "same").stat().st_ino == file.st_ino
        assert stat.S_ISFIFO((top / "fifo").lstat().st_mode) and stat.S_IMODE((top / "fifo").lstat().st_mode) == 0o640
        assert (top / "device").lstat().st_rdev == os.makedev(1, 3)
        assert os.readlink(top / "out") == "/etc/passwd"
        sparse = (top / "sparse").stat()
        assert sparse.st_size == 50_000_000 and sparse.st_blocks * 512 < 1_000_000
        with open(top / "sparse", "rb") as data:
            data.seek(20_000_000)
            assert data.read(5) == b"data\0"
        assert stat.S_ISREG((top / "socket").lstat().st_mode)
        assert (stat.S_IMODE(top.stat().st_mode), top.stat().st_mtime) == (0o711, 5)


async def test_owner_mode_and_time_are_those_asked_for(forest: Forest):
    source = await forest.files(d__f="1")
    action = copy("/", "/x/y", user=Owner(number=5), mode=0o750, timestamp=7_000_000_000)
    stack = await do(forest, action, "", source)
    for path in ("x", "x/y", "x/y/d", "x/y/d/f"):
        assert (forest.owner(stack, path), forest.mode(stack, path)) == ((5, 5), 0o750)
        assert forest.status(stack, path).st_mtime == 7
    symbolic = await do(forest, copy("/", "/x", symbolic_mode="g+w,o="), "", source)
    assert (forest.mode(symbolic, "x/d/f"), forest.mode(symbolic, "x/d")) == (0o660, 0o770)


async def test_names_of_owners_are_looked_up_in_an_input(forest: Forest):
    def fill(root: Path) -> None:
        (root / "etc").mkdir()
        (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nme:x:11:12::/:\n")
        (root / "etc/group").symlink_to("/etc/groups")
        (root / "etc/groups").write_text("staff:x:50:\n")

    users, source = await forest.plant(fill), await forest.files(f="1")
    for user, group, found in (
        (Owner(name="me", input=0), None, (11, 12)),
        (Owner(name="me", input=0), Owner(name="staff", input=0), (11, 50)),
        (Owner(number=7), Owner(name="nobody-knows", input=0), (7, 7)),
        (Owner(name="unknown", input=0), Owner(number=9), (0, 9)),
        (None, Owner(number=9), (0, 9)),
        (Owner(name="me", input=1), None, (0, 0)),
    ):
        stack = await do(forest, copy("/f", "/f", user=user, group=group), users, source)
        assert forest.owner(stack, "f") == found


# --- the other actions


async def test_directories_files_and_links_are_made(forest: Forest):
    actions: list[Action] = [
        MakeDirectory(path="/a/b", mode=0o750, make_parents=True, user=Owner(number=4), timestamp=1_000_000_000),
        MakeFile(path="/a/f", mode=0o640, data=b"text", group=Owner(number=3)),
        Symlink(target="f", path="/a/link"),
        MakeFile(path="/a/link", mode=0o777, data=b"more"),
    ]
    steps = [
        FileAction(action=action, input=number, output=0 if number == 3 else -1)
        for number, action in enumerate(actions)
    ]
    [stack] = await forest.trees.apply(steps, [""])
    assert forest.listing(stack) == {"a/": "", "a/b/": "", "a/f": "more", "a/link": "-> f"}
    assert (forest.mode(stack, "a/b"), forest.owner(stack, "a")) == (0o750, (4, 4))
    assert (forest.mode(stack, "a/f"), forest.owner(stack, "a/f")) == (0o640, (0, 3))
    assert len(stack.split()) == 1


async def test_a_directory_without_one_above_it(forest: Forest):
    with pytest.raises(NotFound, match="mkdir /a/b: no such file"):
        await do(forest, MakeDirectory(path="/a/b", mode=0o755))
    there = await forest.files(a__f="1")
    assert forest.listing(await do(forest, MakeDirectory(path="/a", mode=0o755), there)) == forest.listing(there)
    with pytest.raises(InvalidParameter, match="file exists"):
        await do(forest, Symlink(target="x", path="/a"), there)


async def test_files_are_removed(forest: Forest):
    target = await forest.files(a__b__c="1", x1="1", x2="2", keep="3")
    stack = await do(forest, Remove(path="/a"), target)
    assert set(forest.listing(stack)) == {"x1", "x2", "keep"}
    assert set(forest.listing(await do(forest, Remove(path="/x*", wildcards=True), stack))) == {"keep"}
    with pytest.raises(NotFound):
        await do(forest, Remove(path="/a"), stack)
    assert forest.listing(await do(forest, Remove(path="/a", may_be_missing=True), stack)) == forest.listing(stack)


async def test_results_in_between_are_inputs_of_later_actions(forest: Forest):
    steps = [
        FileAction(action=MakeFile(path="/one", mode=0o644, data=b"1"), input=0),
        FileAction(action=MakeFile(path="/two", mode=0o644, data=b"2"), input=1, output=1),
        FileAction(action=copy("/one", "/copied"), input=-1, second_input=2, output=0),
        FileAction(action=MakeFile(path="/three", mode=0o644, data=b"3"), input=1),
    ]
    first, second = await forest.trees.apply(steps, [await forest.files(base="0")])
    assert forest.listing(first) == {"copied": "1"}
    assert forest.listing(second) == {"base": "0", "one": "1", "two": "2"}
    used = {element for stack in (first, second) for element in stack.split()}
    assert set(forest.diffs.all()) == used


async def test_a_failure_later_on_leaves_nothing(forest: Forest):
    steps = [
        FileAction(action=MakeFile(path="/one", mode=0o644, data=b"1" * 300_000), output=0),
        FileAction(action=Remove(path="/no"), input=0),
    ]
    with pytest.raises(NotFound):
        await forest.trees.apply(steps, [])
    assert forest.diffs.all() == []


async def test_a_tree_of_2500_levels_is_copied(forest: Forest):
    source = await forest.plant(lambda root: deepen(root, bottom="bottom"))
    stack = await do(forest, copy("/", "/x"), "", source)
    [layer] = await forest.diffs.layers(stack)
    with tarfile.open(fileobj=io.BytesIO(await forest.store.blobs.read(layer.blob))) as archive:
        assert len(archive.getnames()) == 2502
    await forest.diffs.remove(forest.diffs.all())
    await forest.store.layers.remove(layer.chain_id)
    await forest.store.emptied()
    assert forest.store.nothing_left()


async def test_a_file_that_somebody_has_a_lease_on_is_not_waited_for(forest: Forest):
    source = await forest.files(held="1")
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with open(Path(forest.diffs.lower(source)[0]) / "held", "r+b") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        try:
            async with asyncio.timeout(20):
                with pytest.raises(InvalidParameter, match="held: resource temporarily unavailable"):
                    await do(forest, copy("/held", "/"), "", source)
        finally:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            signal.signal(signal.SIGIO, before)
    assert forest.diffs.all() == [source]


async def test_a_killed_worker_fails_the_operation_and_leaves_nothing(forest: Forest):
    data = b"x" * 30_000_000
    step = FileAction(action=MakeFile(path="/f", mode=0o644, data=data), output=0)
    before = workers_of(os.getpid())
    work = Tasks().spawn(forest.trees.apply([step], []), "apply", awaited=True)
    async with asyncio.timeout(20):
        while not (new := workers_of(os.getpid()) - before):
            await asyncio.sleep(0)
    for pid in new:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(SystemFault, match="died"):
        await work
    await forest.store.emptied()
    assert forest.store.nothing_left() and forest.diffs.all() == []


# --- differences


async def test_a_difference_makes_one_tree_the_other(forest: Forest):
    lower = await forest.files(d__same="1", d__gone="2", d__changed="3", all__of__it="4")
    base = await forest.files(other="0")

    def upper_of(root: Path) -> None:
        (root / "d").mkdir()
        for name, text in (("same", "1"), ("changed", "5"), ("new", "6")):
            (root / "d" / name).write_text(text)

    upper = await forest.plant(upper_of, base)
    difference = await forest.trees.difference(lower, upper)
    assert len(difference.split()) == 1
    assert forest.listing(f"{lower} {difference}") == forest.listing(upper)
    [*_, layer] = await forest.diffs.layers(f"{lower} {difference}")
    with tarfile.open(fileobj=io.BytesIO(await forest.store.blobs.read(layer.blob))) as archive:
        assert {".wh.all", "d/.wh.gone", "d/new", "other"} <= set(archive.getnames())
    assert forest.listing(await forest.trees.difference(upper, upper)) == {}
