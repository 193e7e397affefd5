"""The group of the socket: by the host's own files, or those below a root."""

from pathlib import Path

import pytest

from husk.cli.install import group
from husk.errors import SystemFault
from tests.support.programs import WrittenPrograms


def test_members_below_a_root(root: Path) -> None:
    (root / "etc/group").write_text("root:x:0:\nbroken\nboxes:x:7:anna,bert\nempty:x:8:\n")
    assert group.members(root, "boxes") == ["anna", "bert"]
    assert group.members(root, "empty") == []
    assert group.members(root, "none") is None
    (root / "etc/group").unlink()
    assert group.members(root, "boxes") is None


def test_members_of_this_host() -> None:
    assert group.members(Path("/"), "root") is not None
    assert group.members(Path("/"), "no-such-group") is None


def test_with_shadows_programs(root: Path, programs: WrittenPrograms) -> None:
    programs.add("groupadd", "groupdel", "addgroup")
    group.make(Path("/"), "boxes")
    group.make(root, "boxes")
    group.remove(root, "boxes")
    assert programs.told == [
        "groupadd --system boxes",
        f"groupadd --prefix {root} --system boxes",
        f"groupdel --prefix {root} boxes",
    ]
    programs.add("groupadd", script="exit 9")
    with pytest.raises(SystemFault, match="cannot make the group taken: groupadd failed"):
        group.make(Path("/"), "taken")


def test_with_busybox(root: Path, programs: WrittenPrograms) -> None:
    programs.add("addgroup", "delgroup")
    group.make(Path("/"), "boxes")
    assert programs.told == ["addgroup -S boxes"]
    with pytest.raises(SystemFault, match="there is neither of groupadd, addgroup"):
        group.make(root, "boxes")
