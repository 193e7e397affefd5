"""The platforms whose programs this host can run: its own, those its processor runs too, and those with an emulator."""

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
# What a processor must have for each level of its architecture, by the kernel's names.
_LEVELS = {
    "v2": ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"),
    "v3": ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"),
    "v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
_EMULATED = ("arm64", "riscv64", "ppc64", "ppc64le", "s390x", "386", "mips64le", "mips64", "loong64", "arm")


def runnable(machine: str, flags: Collection[str], emulators: Collection[str]) -> list[Platform]:
    """All platforms whose programs run here, the host's own first; `flags` are those of its processor."""
    own = _OWN.get(machine, (machine,))
    found = [Platform(own[0], "linux")]
    if own[0] == "amd64":
        for level, needed in _LEVELS.items():
            if not all(flag in flags for flag in needed):
                break
            found.append(Platform("amd64", "linux", level))
    for architecture in ("amd64", *_EMULATED):
        if architecture == own[0]:
            continue
        if architecture in own or f"qemu-{_EMULATORS.get(architecture, architecture)}" in emulators:
            variants = ("v7", "v6") if architecture == "arm" else ("",)
            found += [Platform(architecture, "linux", variant) for variant in variants]
    return found


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
