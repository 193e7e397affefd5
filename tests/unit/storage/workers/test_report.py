"""Answers as the daemon reads them."""

import os
import threading
from typing import Any

import pytest

from husk.storage.workers import report
from husk.storage.workers.answers import Answer, FoundFile, Looked
from husk.storage.workers.messages import decode_answer, encode
from husk.storage.workers.report import AnswerPipe


async def test_a_long_answer_is_decoded_in_a_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A list of 20,000 files held everybody else up for most of a second."""
    decode = decode_answer
    threads: list[int] = []

    def watched(line: bytes) -> Answer:
        threads.append(threading.get_ident())
        return decode(line)

    monkeypatch.setattr(report, "decode_answer", watched)
    few, many = (Looked([FoundFile("name", 0o644, 0, 0, 0, 0)] * count) for count in (1, 2000))
    (tmp_path / "said").write_bytes(encode(few) + encode(many) + encode(few)[:10])
    pipe = AnswerPipe(os.open(tmp_path / "said", os.O_RDONLY))
    assert await pipe.next() == few
    assert await pipe.next() == many
    assert await pipe.next() is None, "it was cut"
    assert threads[0] == threading.get_ident() != threads[1]
    pipe.close()
