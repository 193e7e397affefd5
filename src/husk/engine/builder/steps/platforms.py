"""Can this host run programs of a platform? Its own, those that its processor runs too, and those with an emulator."""

from collections.abc import Callable, Collection

from husk.errors import Unavailable
from husk.registry.manifest import Platform

_OWN = {
    "x86_64": ("amd64", "386"),
    "aarch64": ("arm64", "arm"),
    "armv7l": ("arm",),
    "i686": ("386",),
    "ppc64le": ("ppc64le",),
    "riscv64": ("riscv64",),
    "s390x": ("s390x",),
    "loongarch64": ("loong64",),
}
# How QEMU names them.
_EMULATORS = {
    "amd64": "x86_64",
    "386": "i386",
    "arm64": "aarch64",
    "loong64": "loongarch64",
    "mips64le": "mips64el",
    "mipsle": "mipsel",
}


def check(platform: Platform | None, machine: str, emulators: Callable[[], Collection[str]]) -> None:
    """`emulators` tells the kernel's names of those that are registered. Unavailable if the platform cannot be run."""
    if platform is None or not platform.architecture:
        return
    if platform.os not in ("", "linux"):
        raise Unavailable(f"this host runs programs for Linux alone: no process of {platform} can be run")
    wanted = platform.architecture
    if wanted in _OWN.get(machine, (machine,)):
        return
    emulator = f"qemu-{_EMULATORS.get(wanted, wanted)}"
    if emulator not in emulators():
        raise Unavailable(
            f"no support for running processes with {platform} platform: install qemu-user-static and binfmt-support, "
            f"so that {emulator} is among /proc/sys/fs/binfmt_misc"
        )
