import os
from collections.abc import AsyncIterator

import pytest

from husk.cli.kit.files import content_of, read_from, written_to
from husk.errors import InvalidParameter, SystemFault


async def given(*pieces: bytes, fails: bool = False) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if fails:
        raise SystemFault("broken off")


async def test_what_is_broken_off_leaves_what_was_there(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"before")
    with pytest.raises(SystemFault, match="broken off"):
        await written_to(str(file), given(b"half", fails=True))
    assert file.read_bytes() == b"before" and os.listdir(tmp_path) == ["file"]
    await written_to(str(file), given(b"a", b"b"))
    assert file.read_bytes() == b"ab" and os.listdir(tmp_path) == ["file"]


async def test_devices_are_written_as_they_are():
    await written_to("/dev/null", given(b"a"))
    assert os.path.exists("/dev/null") and not os.path.isfile("/dev/null")


async def test_a_terminal_gets_no_archive(monkeypatch):
    monkeypatch.setattr("husk.cli.kit.files.at_terminal", lambda: True)
    with pytest.raises(InvalidParameter, match="refusing to save to a terminal"):
        await written_to("", given(b"a"))


async def test_reading(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert b"".join([piece async for piece in read_from(str(tmp_path / "file"))]) == b"abc"
    assert content_of(str(tmp_path / "file")) == b"abc"
    with pytest.raises(InvalidParameter, match="cannot read"):
        content_of(str(tmp_path / "none"))
