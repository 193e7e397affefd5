"""Files that were made for mounts alone go, and nothing else."""

import os
from pathlib import Path

import pytest

from husk.runtime.assembly.stubs import Stubs


@pytest.fixture
def upper(tmp_path: Path) -> Path:
    top = tmp_path / "upper"
    (top / "etc").mkdir(parents=True)
    (top / "etc/hosts").touch()
    (top / "run/secrets").mkdir(parents=True)
    (top / "run/secrets/key").touch()
    return top


def found(top: Path) -> list[str]:
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


def test_all_of_it_goes(upper: Path) -> None:
    Stubs(upper).remove()
    assert found(upper) == []


def test_what_the_step_has_put_beside_stays(upper: Path) -> None:
    stubs = Stubs(upper)
    (upper / "etc/own").touch()
    os.utime(upper / "etc", ns=(1, 5_000_000_000))
    stubs.remove()
    assert found(upper) == ["etc", "etc/own"]
    assert (upper / "etc").stat().st_mtime_ns == 5_000_000_000


def test_what_the_step_has_written_itself_stays(upper: Path) -> None:
    stubs = Stubs(upper)
    (upper / "etc/hosts").write_text("mine")
    (upper / "run").chmod(0o700)
    stubs.remove()
    assert found(upper) == ["etc", "etc/hosts", "run"]


def test_no_link_of_the_step_is_followed(upper: Path, tmp_path: Path) -> None:
    stubs = Stubs(upper)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "hosts").touch()
    (upper / "etc/hosts").unlink()
    (upper / "etc").rmdir()
    (upper / "etc").symlink_to(outside)
    stubs.remove()
    assert found(outside) == ["hosts"]
    assert (upper / "etc").is_symlink()
