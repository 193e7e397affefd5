"""Programs for the kernel out of lists of system calls, by the real libseccomp."""

import errno
import struct

import pytest

from husk.kernel import seccomp
from husk.kernel.seccomp import Comparison, CompileError, SeccompRule, compile_filter

ALLOW, ERRNO, KILL = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL_PROCESS"
READ, PERSONALITY = 0, 135
X86_64 = 0xC000003E


def verdict(program: bytes, call: int, *arguments: int, architecture: int = X86_64) -> int:
    """Return the kernel's verdict on a call: the few instructions of BPF that such programs use."""
    data = struct.pack("<iIQ6Q", call, architecture, 0, *arguments, *([0] * (6 - len(arguments))))
    instructions = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    accumulator = at = 0
    while True:
        code, true, false, k = instructions[at]
        at += 1
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, k)[0]
        elif code == 0x54:
            accumulator &= k
        elif code == 0x06:
            return k
        elif code == 0x05:
            at += k
        else:
            holds = {0x15: accumulator == k, 0x25: accumulator > k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}
            at += true if holds[code] else false


def test_calls_on_the_list_get_its_action_and_others_the_default() -> None:
    program = compile_filter(ERRNO, errno.EPERM, ["SCMP_ARCH_X86_64"], [SeccompRule(["read", "no_such_call"], ALLOW)])
    assert verdict(program, READ) == 0x7FFF0000
    assert verdict(program, PERSONALITY) == 0x00050000 | errno.EPERM
    assert verdict(program, READ, architecture=5) != 0x7FFF0000


def test_arguments_are_compared() -> None:
    rules = [
        SeccompRule(["personality"], ALLOW, arguments=[Comparison(0, "SCMP_CMP_EQ", 8)]),
        SeccompRule(["clone"], ALLOW, arguments=[Comparison(0, "SCMP_CMP_MASKED_EQ", 0xF0, 0x10)]),
    ]
    program = compile_filter(ERRNO, 38, ["SCMP_ARCH_X86_64"], rules)
    assert [verdict(program, PERSONALITY, value) == 0x7FFF0000 for value in (8, 9)] == [True, False]
    assert [verdict(program, 56, value) == 0x7FFF0000 for value in (0x1F, 0x2F)] == [True, False]
    assert verdict(program, PERSONALITY, 9) & 0xFFFF == 38


def test_a_rule_has_an_error_of_its_own() -> None:
    program = compile_filter(ALLOW, 0, ["SCMP_ARCH_X86_64"], [SeccompRule(["read"], ERRNO, errno=errno.ENOSYS)])
    assert verdict(program, READ) == 0x00050000 | errno.ENOSYS


def test_every_architecture_may_be_named_twice() -> None:
    assert compile_filter(
        ALLOW, 0, ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86_64", "SCMP_ARCH_X86"], [SeccompRule(["read"], KILL)]
    )


@pytest.mark.parametrize(
    ("default", "architecture", "rule"),
    [
        ("SCMP_ACT_NOTIFY", "SCMP_ARCH_X86_64", SeccompRule(["read"], ALLOW)),
        (ERRNO, "SCMP_ARCH_ODD", SeccompRule(["read"], ALLOW)),
        (ERRNO, "SCMP_ARCH_X86_64", SeccompRule(["read"], "SCMP_ACT_TRACE")),
        (ERRNO, "SCMP_ARCH_X86_64", SeccompRule(["read"], ALLOW, arguments=[Comparison(0, "SCMP_CMP_ODD", 1)])),
        (ERRNO, "SCMP_ARCH_X86_64", SeccompRule(["read"], ALLOW, arguments=[Comparison(9, "SCMP_CMP_EQ", 1)])),
        (ALLOW, "SCMP_ARCH_X86_64", SeccompRule(["read"], ALLOW)),
    ],
)
def test_what_cannot_be_expressed_is_left_to_the_runtime(default: str, architecture: str, rule: SeccompRule) -> None:
    with pytest.raises(CompileError):
        compile_filter(default, 1, [architecture], [rule])


def test_a_host_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(seccomp.ctypes, "CDLL", missing)  # type: ignore[attr-defined]
    with pytest.raises(CompileError, match="cannot open shared object file"):
        compile_filter(ALLOW, 0, [], [])
