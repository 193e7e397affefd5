"""A layer made of a container gives the same files again, whatever the container did to them.

Hypothesis plays the container: random changes through a real overlayfs, then diff, layer, and a mount over the new
layer, several times on top of each other.
"""

import asyncio
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from husk.kernel.mount import mounts_below
from husk.runtime.assembly.root import ContainerRoot
from husk.storage.check import difference_from_blob
from tests.support.layers import Store

Step = Callable[[Path], object]
Play = Callable[[Path, list[list[Step]]], None]

# Few names, so that changes meet each other; among them what a careless diff would trip over.
names = st.sampled_from(["a", "b", "c", ".w", "wh.a", "é", "n\n", os.fsdecode(b"\xff"), "x" * 120])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
modes = st.sampled_from([0o000, 0o644, 0o755, 0o4755, 0o2750, 0o1777])
owners = st.sampled_from([(0, 0), (1000, 1000), (0, 33)])
content = st.binary(max_size=600) | st.just(b"big" * 20_000)


def put(path: Path, data: bytes, flags: int) -> None:
    """Without waiting for whoever should read a pipe."""
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | flags, 0o600)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def write(path: str, data: bytes, mode: int, owner: tuple[int, int]) -> Step:
    def step(root: Path) -> None:
        put(root / path, data, os.O_CREAT | os.O_TRUNC)
        os.chown(root / path, *owner)
        os.chmod(root / path, mode)

    return step


def mkdir(path: str, mode: int) -> Step:
    def step(root: Path) -> None:
        (root / path).mkdir(parents=True)
        os.chmod(root / path, mode)

    return step


def remove(root: Path, path: str) -> None:
    target = root / path
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink()


def instead(path: str, other: Step) -> Step:
    """Something else in its place: a directory becomes a file, a file a directory, a directory an opaque one."""

    def step(root: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            remove(root, path)
        other(root)

    return step


def grow(path: str, data: bytes) -> Step:
    def step(root: Path) -> None:
        put(root / path, data, os.O_APPEND)

    return step


def special(path: str, kind: int, device: int) -> Step:
    return lambda root: os.mknod(root / path, kind | 0o600, device)


def attribute(path: str, name: str, value: bytes) -> Step:
    return lambda root: os.setxattr(root / path, name, value, follow_symlinks=False)


new = st.one_of(
    st.builds(write, paths, content, modes, owners),
    st.builds(mkdir, paths, modes),
    st.builds(lambda path, target: lambda root: os.symlink(target, root / path), paths, paths),
)


def replaced(path: str) -> st.SearchStrategy[Step]:
    return st.one_of(
        st.builds(write, st.just(path), content, modes, owners), st.builds(mkdir, st.just(path), modes)
    ).map(lambda other: instead(path, other))


steps = st.lists(
    st.one_of(
        new,
        new,
        paths.flatmap(replaced),
        st.builds(lambda path: lambda root: remove(root, path), paths),
        st.builds(grow, paths, content),
        st.builds(lambda a, b: lambda root: os.link(root / a, root / b, follow_symlinks=False), paths, paths),
        st.builds(lambda a, b: lambda root: os.rename(root / a, root / b), paths, paths),
        st.builds(lambda path, mode: lambda root: os.chmod(root / path, mode), paths, modes),
        st.builds(lambda path, owner: lambda root: os.lchown(root / path, *owner), paths, owners),
        st.builds(attribute, paths, st.sampled_from(["user.a", "trusted.b"]), st.binary(max_size=20)),
        st.builds(
            special, paths, st.sampled_from([stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK]), st.just(os.makedev(1, 3))
        ),
    ),
    min_size=1,
    max_size=14,
)


def snapshot(top: Path) -> dict[str, tuple[Any, ...]]:
    """Everything that a container can see, whole seconds of time as layers have them."""
    first_names: dict[int, str] = {}
    found = {}
    for directory, directories, files in os.walk(top):
        directories.sort()
        for name in sorted([*directories, *files]):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            shown = os.path.relpath(path, top)
            kind = stat.S_IFMT(status.st_mode)
            own: object = b""
            if kind == stat.S_IFREG:
                own = Path(path).read_bytes()
            elif kind == stat.S_IFLNK:
                own = os.readlink(path)
            elif kind != stat.S_IFDIR:
                own = status.st_rdev
            shares = first_names.setdefault(status.st_ino, shown) if kind != stat.S_IFDIR else shown
            xattrs = {
                key: os.getxattr(path, key, follow_symlinks=False) for key in os.listxattr(path, follow_symlinks=False)
            }
            found[shown] = (
                oct(status.st_mode), status.st_uid, status.st_gid, int(status.st_mtime), own, xattrs, shares
            )  # fmt: skip
    return found


async def play(store: Store, scratch: Path, rounds: list[list[Step]]) -> None:
    chain: list[str] = []
    for number, changes in enumerate(rounds):
        before = ContainerRoot(scratch / f"c{number}")
        before.create()
        before.mount(store.layers.lower(chain))
        try:
            for change in changes:
                with contextlib.suppress(OSError):  # what a kernel refuses is no change
                    change(before.merged)
            wanted = snapshot(before.merged)
            unpacked = await store.layers.ingest_diff(before.upper)
        finally:
            before.remove()
        layer = await store.layers.commit(unpacked, chain[-1] if chain else "")
        chain.append(layer.chain_id)
        after = ContainerRoot(scratch / f"r{number}")
        after.create()
        after.mount(store.layers.lower(chain))
        try:
            assert snapshot(after.merged) == wanted
        finally:
            after.remove()
        again = await store.layers.ingest_diff(store.layers.path(layer))
        assert again.diff_id == layer.diff_id, "a layer's files pack to the same bytes again"
        await store.layers.discard(again)
        blob = store.blobs.path(layer.blob)
        assert await difference_from_blob(layer, store.layers.path(layer), blob, store.root) == ""


@pytest.fixture
def playing(tmp_path: Path) -> Iterator[Play]:
    """Plays rounds of changes on one store: its workers, which cost most, start once for all examples."""
    store = Store(tmp_path / "store")
    with asyncio.Runner() as runner:
        runner.run(store.open())
        yield lambda scratch, rounds: runner.run(play(store, scratch, rounds))
        runner.run(store.close())


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting and making devices needs root")
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(rounds=st.lists(steps, min_size=1, max_size=3))
def test_a_layer_of_any_changes_gives_back_the_tree(playing: Play, rounds: list[list[Step]]):
    scratch = Path(tempfile.mkdtemp(prefix="husk-roundtrip-"))
    try:
        playing(scratch, rounds)
    finally:
        assert mounts_below(str(scratch)) == []
        shutil.rmtree(scratch)
