"""Lack of memory is told when conmon notes it, and nothing else is."""

from pathlib import Path

from husk.runtime.supervise.conmon import Bundle
from husk.runtime.supervise.oom_watches import OomWatches
from tests.support.waiting import until_async


async def test_each_note_is_told_once_and_other_files_are_not(tmp_path: Path) -> None:
    watches, told = OomWatches(), list[str]()
    number = watches.add(Bundle("c", tmp_path), lambda: told.append("oom"))
    try:
        (tmp_path / "exit").touch()
        (tmp_path / "oom").write_bytes(b"")
        await until_async(lambda: told == ["oom"], "the first note")
        (tmp_path / "oom").write_bytes(b"")
        await until_async(lambda: told == ["oom", "oom"], "the second")
        watches.remove(number)
    finally:
        watches.close()
