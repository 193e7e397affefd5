import os
import shutil
from pathlib import Path

import pytest

from husk.runtime import elf, monitor_program
from husk.runtime.monitor_program import monitor_program as program_for


class Cut:
    """Stands for taking the library out: how often that was wanted, and what comes of it."""

    def __init__(self) -> None:
        self.times = 0
        self.gives: bytes | None = None
        self.unfit = False

    def __call__(self, program: bytes, library: str, unused: str) -> bytes:
        assert (library, unused) == ("libsystemd.so.0", "sd_journal_")
        self.times += 1
        if self.unfit:
            raise elf.UnfitProgramError
        return program if self.gives is None else self.gives


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cut:
    cut = Cut()
    monkeypatch.setattr(elf, "without", cut)
    monkeypatch.setattr(monitor_program, "_SELINUX", str(tmp_path / "selinux"))
    return cut


@pytest.fixture
def conmon(tmp_path: Path) -> Path:
    """A program that takes `--version` and ends well."""
    return Path(shutil.copy("/bin/true", tmp_path / "conmon"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run" / "monitor"


async def test_a_copy_is_run(cut: Cut, conmon: Path, root: Path) -> None:
    assert await program_for(str(conmon), root) == str(root / "conmon")
    assert (root / "conmon").read_bytes() == conmon.read_bytes()
    assert sorted(os.listdir(root)) == [".program", "conmon"]


async def test_the_next_start_makes_no_other(cut: Cut, conmon: Path, root: Path) -> None:
    for _ in range(2):
        assert await program_for(str(conmon), root) == str(root / "conmon")
    assert cut.times == 1


async def test_another_conmon_has_another_copy(cut: Cut, conmon: Path, root: Path) -> None:
    await program_for(str(conmon), root)
    with open(conmon, "ab") as file:
        file.write(b"newer")
    assert await program_for(str(conmon), root) == str(root / "conmon")
    assert (root / "conmon").read_bytes() == conmon.read_bytes()


async def test_one_that_was_not_made_to_its_end_is_made_again(cut: Cut, conmon: Path, root: Path) -> None:
    root.mkdir(parents=True)
    (root / "conmon").write_bytes(b"of a former conmon")
    (root / "conmon.new").write_bytes(b"half of")
    assert await program_for(str(conmon), root) == str(root / "conmon")
    assert (root / "conmon").read_bytes() == conmon.read_bytes()
    assert sorted(os.listdir(root)) == [".program", "conmon"]


async def test_one_that_needs_the_library_is_run_as_it_is(cut: Cut, conmon: Path, root: Path) -> None:
    cut.unfit = True
    for _ in range(2):
        assert await program_for(str(conmon), root) == str(conmon)
    assert cut.times == 1


async def test_a_former_copy_is_not_run_for_one_that_needs_the_library(cut: Cut, conmon: Path, root: Path) -> None:
    await program_for(str(conmon), root)
    with open(conmon, "ab") as file:
        file.write(b"newer")
    cut.unfit = True
    assert await program_for(str(conmon), root) == str(conmon)
    assert os.listdir(root) == [".program"]


async def test_a_script_is_run_as_it_is(cut: Cut, conmon: Path, root: Path) -> None:
    await program_for(str(conmon), root)
    conmon.write_text("#!/bin/sh\n")
    assert await program_for(str(conmon), root) == str(conmon)


@pytest.mark.parametrize("gives", [b"\x7fELF", Path("/bin/false").read_bytes()], ids=["no program", "one that fails"])
async def test_a_copy_that_does_not_run(cut: Cut, conmon: Path, root: Path, gives: bytes) -> None:
    cut.gives = gives
    for _ in range(2):
        assert await program_for(str(conmon), root) == str(conmon)
        assert os.listdir(root) == []
    assert cut.times == 2, "it may run at the next start"


async def test_where_no_copy_can_be_made(cut: Cut, conmon: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert await program_for(str(conmon), tmp_path / "file" / "monitor") == str(conmon)


async def test_a_copy_that_may_not_be_run_any_more(cut: Cut, conmon: Path, root: Path) -> None:
    await program_for(str(conmon), root)
    (root / "conmon").chmod(0o600)
    assert await program_for(str(conmon), root) == str(conmon)


async def test_where_labels_decide_the_host_s_own_is_run(cut: Cut, conmon: Path, root: Path, tmp_path: Path) -> None:
    await program_for(str(conmon), root)
    (tmp_path / "selinux").touch()
    assert await program_for(str(conmon), root) == str(conmon)
