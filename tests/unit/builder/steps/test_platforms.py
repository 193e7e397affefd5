import pytest

from husk.builder.steps import platforms
from husk.errors import Unavailable
from husk.registry.manifest import Platform


def _none() -> list[str]:
    return []


@pytest.mark.parametrize("architecture", ["amd64", "386"])
def test_the_host_s_own(architecture: str) -> None:
    platforms.check(Platform(architecture=architecture, os="linux"), "x86_64", _none)
    platforms.check(None, "x86_64", _none)


def test_one_with_an_emulator() -> None:
    platforms.check(Platform(architecture="arm64", os="linux"), "x86_64", lambda: ["qemu-aarch64"])
    with pytest.raises(Unavailable, match=r"install qemu-user-static .* qemu-aarch64 is among"):
        platforms.check(Platform(architecture="arm64", os="linux", variant="v8"), "x86_64", lambda: ["qemu-arm"])


def test_another_system() -> None:
    with pytest.raises(Unavailable, match="windows/amd64"):
        platforms.check(Platform(architecture="amd64", os="windows"), "x86_64", _none)


def test_all_that_run_here() -> None:
    level2 = ["cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"]
    found = platforms.runnable("x86_64", level2, ["qemu-aarch64", "qemu-arm"])
    assert [str(one) for one in found] == [
        "linux/amd64", "linux/amd64/v2", "linux/arm64", "linux/386", "linux/arm/v7", "linux/arm/v6",
    ]  # fmt: skip
    assert [str(one) for one in platforms.runnable("aarch64", (), ["qemu-x86_64"])] == [
        "linux/arm64", "linux/amd64", "linux/arm/v7", "linux/arm/v6",
    ]  # fmt: skip
    assert [str(one) for one in platforms.runnable("x86_64", ["avx"], [])] == ["linux/amd64", "linux/386"]
