"""The places of a step's mounts; what mounts them is tested with real steps (tests/integration/builder)."""

import os
from pathlib import Path

import pytest

from husk.config import Config
from husk.errors import InvalidParameter
from husk.runtime.assembly import step
from husk.runtime.assembly.paths import Paths
from husk.runtime.assembly.step import Directory, Layered, MemoryFiles, Secret, StepFiles, StepMount


@pytest.mark.parametrize(
    ("target", "plain"),
    [("/a/b", "/a/b"), ("a/b/", "/a/b"), ("/a/../../b", "/b"), ("//a", "/a"), ("/process", "/process")],
)
def test_targets_have_a_plain_form(target: str, plain: str) -> None:
    assert step.check_target(target) == plain


@pytest.mark.parametrize("target", ["", "/", "/a/..", "/proc", "/proc/sys", "/a/../proc/self"])
def test_where_nothing_may_be_mounted(target: str) -> None:
    with pytest.raises(InvalidParameter):
        step.check_target(target)


def test_the_places_that_all_steps_need(tmp_path: Path) -> None:
    for _ in range(2):
        step.make_points(tmp_path)
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert made == ["dev", "dev/pts", "dev/shm", "etc", "etc/hosts", "etc/resolv.conf", "proc", "sys"]


def test_the_places_of_a_step_s_own(tmp_path: Path) -> None:
    for target, source, selector in (
        ("/run/secrets/key", Secret(b""), ""),
        ("/cache", Directory("/x"), ""),
        ("/a/tmp", MemoryFiles(), ""),
        ("/bound", Layered(()), ""),
        ("/some/part", Layered(()), "/part"),
        ("/cache/inside", MemoryFiles(), ""),
        ("/run/secrets/key/below", MemoryFiles(), ""),
    ):
        step._make_target(tmp_path, StepMount(target=target, source=source, selector=selector))
    made = {str(path.relative_to(tmp_path)): path.is_dir() for path in tmp_path.rglob("*")}
    assert made["run/secrets/key"] is False
    assert {"cache", "a/tmp", "bound", "some", "cache/inside"} <= made.keys()
    assert "some/part" not in made


def test_what_is_left_to_the_runtime() -> None:
    shm = step._for_runtime(StepMount(target="/dev/shm", source=MemoryFiles(5)), None)
    assert (shm.type, shm.options) == ("tmpfs", ("nosuid", "size=5"))
    bound = step._for_runtime(StepMount(target="/dev/x", source=Layered(()), read_only=True), Path("/staged"))
    assert (bound.source, bound.options) == ("/staged", ("bind", "private", "ro"))


def test_a_secret_is_not_shown() -> None:
    assert "hush" not in repr(StepMount(target="/s", source=Secret(b"hush")))


def test_a_runtime_may_wait_in_the_bundle_already(tmp_path: Path) -> None:
    paths = Paths(Config(data_root=tmp_path / "data", exec_root=tmp_path / "run"))
    files = StepFiles(paths, "id")
    pipe = paths.bundle("id") / "config.json"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    files.write_bundle({"a": 1})
    assert pipe.is_file(), "the file takes the pipe's name, and nothing is written to that here"
    files.release()


def test_nothing_is_released_where_nothing_was_made(tmp_path: Path) -> None:
    paths = Paths(Config(data_root=tmp_path / "data", exec_root=tmp_path / "run"))
    files = StepFiles(paths, "id")
    files.release()
    assert files.write_bundle({"a": 1}) == b'{"a":1}'
    bundle = paths.bundle("id")
    assert [path.name for path in bundle.iterdir()] == ["config.json"]
    assert (bundle / "config.json").read_text() == '{"a":1}'
    files.release()
    files.release()
    assert not os.path.exists(bundle)


def test_what_was_written_for_a_step_may_be_removed_later(tmp_path: Path) -> None:
    paths = Paths(Config(data_root=tmp_path / "data", exec_root=tmp_path / "run"))
    files = StepFiles(paths, "id")
    files.write_bundle({"a": 1})
    files.rootfs.mkdir(parents=True)
    files.unmount()
    assert not paths.staging("id").exists() and paths.bundle("id").exists()
    files.remove()
    assert not paths.bundle("id").exists()


def test_what_else_is_in_the_directory_of_mounts_goes_too(tmp_path: Path) -> None:
    paths = Paths(Config(data_root=tmp_path / "data", exec_root=tmp_path / "run"))
    files = StepFiles(paths, "id")
    files.rootfs.mkdir(parents=True)
    (paths.staging("id") / "0").touch()
    files.unmount()
    assert not paths.staging("id").exists()
