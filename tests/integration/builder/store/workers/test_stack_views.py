"""A worker's view of file systems of builds: each at its place, and nothing else."""

import contextlib
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from husk.builder.store.workers.stack_views import show_stacks
from husk.storage.workers.parts import Stack


def seen(work: Callable[[], object]) -> object:
    """Return what a process of its own finds, for it cannot come back."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.write(writer, json.dumps(work()).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    os.waitpid(pid, 0)
    return json.loads(answer)


def refused(path: str) -> int:
    try:
        Path(path).write_text("x")
    except OSError as error:
        return error.errno or 0
    return 0


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for name in ("view", "empty", "l/one", "l/two", "l/upper", "work"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "l/one/a").write_text("1")
    (tmp_path / "l/two/b").write_text("2")
    return tmp_path


def test_each_has_a_place_and_only_the_writable_one_is_written_to(places: Path):
    stacks = [
        Stack([f"{places}/l/two", f"{places}/l/one"], f"{places}/l/upper", f"{places}/work"),
        Stack([f"{places}/l/one"]),
        Stack([f"{places}/empty"]),
    ]

    def look() -> object:
        show_stacks(f"{places}/view", f"{places}/empty", stacks)
        listing = {name: sorted(os.listdir(f"/{name}")) for name in sorted(os.listdir("/"))}
        return listing, refused("/0/new"), refused("/1/new")

    assert seen(look) == [{"0": ["a", "b"], "1": ["a"], "2": []}, 0, errno.EROFS]
    assert os.listdir(places / "l/upper") == ["new"]
    assert os.listdir(places / "view") == []


def test_a_plain_one_is_seen_as_it_is_and_the_disk_beside_it(places: Path):
    os.mknod(places / "l/one/c", 0o020600, 0)

    def look() -> object:
        stacks = [Stack([f"{places}/l/one"], plain=True), Stack([f"{places}/l/one"])]
        show_stacks(f"{places}/view", f"{places}/empty", stacks, ["plain", "overlay"], common=f"{places}/l")
        listing = {name: sorted(os.listdir(f"/{name}")) for name in sorted(os.listdir("/"))}
        return listing, refused("/plain/new"), refused("/disk/two/new")

    assert seen(look) == [
        {"disk": ["one", "two", "upper"], "overlay": ["a"], "plain": ["a", "c"]},
        errno.EROFS,
        0,
    ]
