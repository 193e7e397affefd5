import io
import os
import tarfile

import pytest

from husk.cli.containers.archives import packed, unpacked
from husk.errors import InvalidParameter


async def whole(pack) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(b"".join([piece async for piece in pack.pieces()])))


async def pieces(*entries: tuple[str, bytes | str]):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.LNKTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    yield made.getvalue()


async def test_there(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_text("x")
    (tmp_path / "l").symlink_to("d")
    archive = await whole(packed(f"{tmp_path}/d", "e", False))
    assert archive.getnames() == ["e", "e/f"] and archive.getmember("e/f").uid == os.getuid()
    assert (await whole(packed(f"{tmp_path}/l", "l", False))).getmember("l").issym()
    assert (await whole(packed(f"{tmp_path}/l", "l", True))).getnames() == ["l", "l/f"]
    with pytest.raises(InvalidParameter, match="cannot read"):
        packed(f"{tmp_path}/none", "x", False)


async def test_and_back(tmp_path):
    await unpacked(pieces(("d", b"")), f"{tmp_path}/empty", False)
    assert (tmp_path / "empty").read_bytes() == b""
    (tmp_path / "new").mkdir()
    await unpacked(pieces(("f", b"one")), f"{tmp_path}/new/g", True)
    assert (tmp_path / "new/g").read_bytes() == b"one"
    assert os.stat(tmp_path / "empty").st_uid == os.getuid()


async def test_what_leads_out_is_not_unpacked(tmp_path):
    with pytest.raises(InvalidParameter, match="not safe"):
        await unpacked(pieces(("d", b""), ("d/../../../x", b"bad")), f"{tmp_path}/d", False)
    with pytest.raises(InvalidParameter, match="cannot write"):
        await unpacked(pieces(("d", b"")), f"{tmp_path}/none/d", False)
