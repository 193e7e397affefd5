from pathlib import Path

from husk.runtime.processor import flags


def test_those_of_the_first_processor(tmp_path: Path) -> None:
    told = tmp_path / "cpuinfo"
    told.write_text("processor : 0\nflags\t\t: fpu avx2\n\nprocessor : 1\nflags : other\n")
    assert flags(told) == {"fpu", "avx2"}


def test_a_kernel_that_does_not_tell(tmp_path: Path) -> None:
    assert flags(tmp_path / "none") == frozenset()
