"""The first image: a root file system with one program under many names."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from husk.kernel import process
from husk.kernel.process import Completed
from husk.storage.busybox import archive, root_file_system
from tests.support.tars import content, entries


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "real").write_bytes(b"\x7fELF and more")
    (tmp_path / "busybox").symlink_to("real")
    return tmp_path / "busybox"


def test_the_program_is_there_once_and_has_many_names(program: Path) -> None:
    made = archive(str(program), ["busybox", "sh", "ls"])
    found = entries(made)
    assert content(made, "bin/busybox") == b"\x7fELF and more", "the file, and not the link to it"
    assert [found[f"bin/{name}"].linkname for name in ("sh", "ls")] == ["bin/busybox"] * 2
    assert found["bin/busybox"].isreg() and found["bin/busybox"].mode == 0o755


def test_what_programs_expect_of_a_root_is_there(program: Path) -> None:
    made = archive(str(program), [])
    found = entries(made)
    assert {name: oct(found[name].mode) for name in ("tmp", "root", "etc/passwd")} == {
        "tmp": "0o1777", "root": "0o700", "etc/passwd": "0o644",
    }  # fmt: skip
    assert content(made, "etc/passwd").startswith(b"root:x:0:0:")
    names = list(found)
    assert all("/" not in name or name.rpartition("/")[0] in names[: names.index(name)] for name in names)


async def test_names_that_lead_elsewhere_are_left_out(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(command: Sequence[str]) -> Completed:
        return Completed(0, "sh\n../../etc/x\nsbin/y\n\xe4\n[\n".encode(), b"")

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    made = await root_file_system()
    assert made is not None
    assert [name for name in entries(made) if name.startswith("bin/")] == ["bin/busybox", "bin/sh", "bin/["]


async def test_a_host_without_busybox_has_no_first_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert await root_file_system() is None
