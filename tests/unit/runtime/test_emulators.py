from pathlib import Path

from husk.runtime.emulators import registered


def test_those_that_are_enabled(tmp_path: Path) -> None:
    (tmp_path / "qemu-arm").write_text("enabled\ninterpreter /usr/bin/qemu-arm\n")
    (tmp_path / "qemu-off").write_text("disabled\n")
    (tmp_path / "status").write_text("enabled\n")
    (tmp_path / "register").write_text("")
    assert registered(tmp_path) == {"qemu-arm"}


def test_a_kernel_without_any(tmp_path: Path) -> None:
    assert registered(tmp_path / "none") == frozenset()
