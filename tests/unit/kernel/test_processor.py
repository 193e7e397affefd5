from pathlib import Path

from husk.kernel.processor import hashing_environment


def cpuinfo(directory: Path, model: int, flags: str) -> Path:
    one = f"processor\t: 0\ncpu family\t: 6\nmodel\t\t: {model}\nflags\t\t: fpu avx avx2 {flags}\n\n"
    path = directory / "cpuinfo"
    path.write_text(one + one.replace("family\t: 6", "family\t: 25"))
    return path


def test_avx2_is_left_aside_where_it_is_slower(tmp_path: Path) -> None:
    assert hashing_environment({}, cpuinfo(tmp_path, 85, "bmi2")) == {"OPENSSL_ia32cap": ":~0x20"}


def test_other_processors_are_left_to_openssl(tmp_path: Path) -> None:
    assert hashing_environment({}, cpuinfo(tmp_path, 79, "bmi2")) == {}
    assert hashing_environment({}, cpuinfo(tmp_path, 85, "bmi2 sha_ni")) == {}
    assert hashing_environment({}, tmp_path / "none") == {}


def test_what_the_administrator_has_set_counts(tmp_path: Path) -> None:
    set_before = {"OPENSSL_ia32cap": ":~0x0", "HOME": "/"}
    assert hashing_environment(set_before, cpuinfo(tmp_path, 85, "")) == {"OPENSSL_ia32cap": ":~0x0"}
