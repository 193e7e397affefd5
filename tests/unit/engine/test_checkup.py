"""A whole data root looked at with nobody's help: what is missing, what cannot be read, and what is left over."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from husk.engine import checkup
from husk.engine.checkup import Examination, Types, examine, examine_live, unreadable_records
from husk.engine.model.volume import Volume
from husk.errors import SystemFault
from husk.storage.check import Problem
from husk.storage.state.store import Change, StateStore
from tests.unit.engine.records import container


@pytest.fixture
async def root(tmp_path: Path) -> AsyncIterator[Path]:
    """A data root with a container and a volume that are all there."""
    record = container("box", id="c" * 64)
    state = StateStore.open(tmp_path / "state.db")
    volume = Volume(name="data", created="2026-01-01T00:00:00Z")
    await state.commit(
        Change("container", record.id, msgspec.json.encode(record)),
        Change("volume", "data", msgspec.json.encode(volume)),
    )
    state.close()
    for path in ("blobs/sha256", "layers/l", f"containers/{record.id}", "volumes/data/_data", "volumes/.trash"):
        (tmp_path / path).mkdir(parents=True)
    yield tmp_path


async def put(root: Path, *changes: Change) -> None:
    state = StateStore.open(root / "state.db")
    await state.commit(*changes)
    state.close()


async def test_a_sound_store_is_told_with_what_is_in_it(root: Path) -> None:
    found = await examine(root, {})
    assert found.sound and found.problems == []
    assert found.looked_at == "0 blobs (0.0 MB), 0 layers, 0 images, 0 names, 1 containers, 1 volumes"


async def test_a_record_that_cannot_be_read_is_named_with_its_cure(root: Path) -> None:
    await put(root, Change("network", "n", b"[]"), Change("image", "i", b"{"), Change("image-name", "a:1", b"\xff"))
    found = await examine(root, {})
    assert set(found.unreadable) == {("network", "n"), ("image", "i"), ("image-name", "a:1")}
    cures = {problem.subject: problem.cure for problem in found.problems if "cannot be read" in problem.detail}
    assert "puts it aside" in cures["network n"] and "forgets it" in cures["image i"]
    assert not found.sound and all(problem.fixable for problem in found.problems if problem.subject in cures)
    assert set(unreadable_records(root, {})) == {"network n", "image i", "image-name a:1"}


async def test_what_a_later_version_keeps_is_not_ours_to_judge(root: Path) -> None:
    await put(root, Change("something-new", "x", b"whatever"))
    assert (await examine(root, {})).sound


async def test_directories_and_records_belong_together(root: Path) -> None:
    (root / "containers" / ("c" * 64)).rmdir()
    (root / "volumes/data/_data").rmdir()
    (root / "volumes/data").rmdir()
    (root / "volumes/nobodys").mkdir()
    found = await examine(root, {})
    told = {problem.subject: problem for problem in found.problems}
    assert told[f"container {'c' * 64}"].detail == "its directory is missing"
    assert told["volume data"].cure == "docker volume rm data: its content is lost"
    leftover = told["directory volumes/nobodys"]
    assert not leftover.damage and "move it away before" in leftover.cure


async def test_the_directory_of_a_record_that_cannot_be_read_is_nobodys_rest(root: Path) -> None:
    (root / "containers/odd").mkdir()
    await put(root, Change("container", "odd", b"[]"))
    assert not any("directory containers/odd" in problem.subject for problem in (await examine(root, {})).problems)


async def test_what_a_killed_check_left_is_told(root: Path) -> None:
    (root / ".check-abc").mkdir()
    found = await examine(root, {})
    assert found.scratch == [".check-abc"] and found.sound
    assert [problem.fixable for problem in found.problems] == [True]


async def test_a_store_that_is_missing_is_told_from_one_that_never_was(root: Path, tmp_path: Path) -> None:
    (root / "state.db").unlink()
    with pytest.raises(SystemFault, match="is missing, though containers, volumes are not empty: put it back"):
        await examine(root, {})
    (tmp_path / "new").mkdir()
    with pytest.raises(SystemFault, match=r"there is no store in .*: say where it is"):
        await examine(tmp_path / "new", {})
    (root / "state.db").write_bytes(b"no database" * 1000)
    with pytest.raises(SystemFault, match="Put it back from a backup; no daemon should start here before"):
        await examine(root, {})


async def test_beside_a_daemon_only_what_two_looks_agree_on_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    lasting, passing = Problem("blob a", "it is short", "x"), Problem("blob b", "it is short", "x")
    leftover = Problem("blob c", "nobody uses it", "x", damage=False)
    looks = [[lasting, passing, leftover], [lasting, leftover], [leftover]]

    async def look(root: Path, wings: Types, deep: bool) -> Examination:
        return Examination(problems=looks.pop(0))

    monkeypatch.setattr(checkup, "examine", look)
    assert (await examine_live(Path("/nowhere"), {})).problems == [lasting]
    assert (await examine_live(Path("/nowhere"), {})).problems == [], "one look is enough where nothing is damaged"
    assert looks == []
