"""The group of the socket: by the host's own files, or those below a root."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from husk.cli.install import group
from husk.errors import SystemFault
from husk.kernel import process
from husk.kernel.process import Completed


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


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    lines: list[list[str]] = []

    async def run(command: Sequence[str], **_: Any) -> Completed:
        lines.append([os.path.basename(command[0]), *command[1:]])
        return Completed(9 if "taken" in command else 0, b"", b"")

    monkeypatch.setattr(process, "run", run)
    return lines


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/sbin/{name}" if name in names else None)


def test_with_shadows_programs(told: list[list[str]], monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    only(monkeypatch, "groupadd", "groupdel", "addgroup")
    group.make(Path("/"), "boxes")
    group.make(root, "boxes")
    group.remove(root, "boxes")
    assert told == [
        ["groupadd", "--system", "boxes"],
        ["groupadd", "--prefix", str(root), "--system", "boxes"],
        ["groupdel", "--prefix", str(root), "boxes"],
    ]
    with pytest.raises(SystemFault, match="cannot make the group taken: groupadd failed"):
        group.make(Path("/"), "taken")


def test_with_busybox(told: list[list[str]], monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    only(monkeypatch, "addgroup", "delgroup")
    group.make(Path("/"), "boxes")
    assert told == [["addgroup", "-S", "boxes"]]
    with pytest.raises(SystemFault, match="there is neither of groupadd, addgroup"):
        group.make(root, "boxes")
