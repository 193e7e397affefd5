"""The directories of cache mounts."""

import os
from pathlib import Path

import pytest

from husk.builder.store.cache_directories import CacheDirectories
from husk.errors import InvalidParameter
from husk.kernel.mount import mounts_below

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def caches(tmp_path: Path) -> CacheDirectories:
    return CacheDirectories.open(tmp_path / "caches", [])


def test_made_measured_removed(caches: CacheDirectories) -> None:
    caches.make("one")
    assert caches.has("one")
    assert caches.path("one").stat().st_mode & 0o777 == 0o755
    (caches.path("one") / "file").write_bytes(b"x" * 100)
    assert caches.size("one") == 100
    for _ in range(2):
        caches.remove("one")
    assert not caches.has("one")
    assert caches.size("one") == 0


def test_what_has_no_record_goes_when_they_are_opened(caches: CacheDirectories, tmp_path: Path) -> None:
    for name in ("kept", "lost"):
        caches.make(name)
    (tmp_path / "caches/.new/half/content").mkdir(parents=True)
    again = CacheDirectories.open(tmp_path / "caches", ["kept"])
    assert (again.has("kept"), again.has("lost")) == (True, False)
    assert os.listdir(tmp_path / "caches") == ["kept"]


@needs_root
@pytest.mark.parametrize("layers", [1, 2])
def test_a_first_content_is_a_copy(caches: CacheDirectories, tmp_path: Path, layers: int) -> None:
    lower = [tmp_path / f"layer{number}" for number in range(layers)]
    for number, layer in enumerate(lower):
        (layer / "part").mkdir(parents=True)
        (layer / f"part/file{number}").write_text("text")
    os.chown(lower[0] / "part", 7, 8)
    (lower[0] / "part").chmod(0o750)
    caches.make("one", [str(layer) for layer in lower], "/part")
    made = caches.path("one")
    assert sorted(os.listdir(made)) == [f"file{number}" for number in range(layers)]
    status = made.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (7, 8, 0o750)
    assert mounts_below(str(tmp_path)) == []


@needs_root
def test_a_first_content_that_is_not_there(caches: CacheDirectories, tmp_path: Path) -> None:
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer/out").symlink_to("/etc")
    for selector in ("/no", "/out"):
        with pytest.raises(InvalidParameter, match=f"the source of a cache mount: {selector}: no such file"):
            caches.make("one", [str(tmp_path / "layer")], selector)
    assert not caches.has("one")
    assert mounts_below(str(tmp_path)) == []
