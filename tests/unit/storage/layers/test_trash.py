"""Things thrown away are out of sight at once, and gone later."""

import errno
import threading
from pathlib import Path

from husk.kernel import trees
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


async def test_what_somebody_still_writes_into_is_deleted_later(tmp_path: Path) -> None:
    refusals = [OSError(errno.ENOTEMPTY, "Directory not empty")] * 3

    def remove(path: Path, stop: threading.Event) -> None:
        if refusals:
            raise refusals.pop()
        trees.remove_tree(path, stop)

    trash = Trash(tmp_path / "trash", tmp_path / "l", remove, pause=0)
    (tmp_path / "trash" / "1").mkdir(parents=True)
    trash.empty_soon()
    await trash.emptied()
    assert trash.names() == set()
    await trash.close()
