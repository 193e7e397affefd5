from pathlib import Path

from husk.runtime.emulators import processor_flags, registered


def test_those_that_are_enabled(tmp_path: Path) -> None:
    (tmp_path / "qemu-arm").write_text("enabled\ninterpreter /usr/bin/qemu-arm\n")
    (tmp_path / "qemu-off").write_text("disabled\n")
    (tmp_path / "status").write_text("enabled\n")
    (tmp_path / "register").write_text("")
    assert registered(tmp_path) == {"qemu-arm"}


def test_a_kernel_without_any(tmp_path: Path) -> None:
    assert registered(tmp_path / "none") == frozenset()


def test_those_of_the_first_processor(tmp_path: Path) -> None:
    told = tmp_path / "cpuinfo"
    told.write_text("processor : 0\nflags\t\t: fpu avx2\n\nprocessor : 1\nflags : other\n")
    assert processor_flags(told) == {"fpu", "avx2"}


def test_a_kernel_that_does_not_tell(tmp_path: Path) -> None:
    assert processor_flags(tmp_path / "none") == frozenset()
