"""What is thrown away is out of sight at once, and gone later."""

from pathlib import Path

from husk.storage.layers.trash import Trash


async def test_what_is_thrown_away_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "l" / "1" / "deep").mkdir(parents=True)
    trash = Trash(tmp_path / "trash", tmp_path / "l")
    trash.make()
    trash.take("1")
    trash.take("2")
    assert trash.names() == {"1"} and not (tmp_path / "l" / "1").exists()
    trash.empty_soon()
    await trash.emptied()
    assert trash.names() == set()
    await trash.close()
