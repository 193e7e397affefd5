from pathlib import Path

import pytest

from husk.builder.jobs.kept_builds import KeptBuilds
from husk.builder.store.build_records import RECORD, BuildRecords


async def test_any_name_will_do(tmp_path: Path) -> None:
    kept = KeptBuilds(BuildRecords(tmp_path))
    for ref in ("../../x", "a", "\udcff" * 300):
        await kept.save(ref, {RECORD: ref.encode("utf-8", "surrogateescape")})
    assert len(await kept.load()) == 3
    assert await kept.read("../../x", RECORD) == b"../../x"
    await kept.remove("a")
    assert await kept.read("a", RECORD) is None
    assert len(list(tmp_path.iterdir())) == 2


async def test_a_disk_that_fails_fails_no_build(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("x")
    kept = KeptBuilds(BuildRecords(tmp_path / "file/records"))
    assert await kept.load() == []
    await kept.save("a", {RECORD: b"x"})
    assert "cannot be kept" in caplog.text
