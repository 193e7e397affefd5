"""Work that two processes share: each piece is done once."""

import os
import struct
from pathlib import Path

import pytest

from husk.builder.store.workers.shared_work import share


@pytest.mark.parametrize("processors", [1, 2])
def test_each_piece_is_done_once(tmp_path: Path, processors: int):
    count = 100_000
    done = os.open(tmp_path / "done", os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def work(number: int) -> None:
        os.write(done, number.to_bytes(4, "big"))

    share(count, work, processors)
    numbers = (tmp_path / "done").read_bytes()
    os.close(done)
    assert sorted(struct.unpack(f">{len(numbers) // 4}I", numbers)) == list(range(count))
