"""Makes the program that the kernel runs at each system call out of a list of them, through libseccomp.

The OCI runtimes do the same at every start of a container, which costs more than all the rest of the start together;
done here it is done once. Debian's crun and runc depend on the library, so it is there where containers can run.
"""

import ctypes
import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

_ACTIONS = {
    "SCMP_ACT_KILL": 0x00000000,
    "SCMP_ACT_KILL_THREAD": 0x00000000,
    "SCMP_ACT_KILL_PROCESS": 0x80000000,
    "SCMP_ACT_TRAP": 0x00030000,
    "SCMP_ACT_ERRNO": 0x00050000,
    "SCMP_ACT_LOG": 0x7FFC0000,
    "SCMP_ACT_ALLOW": 0x7FFF0000,
}
_OPERATORS = {
    name: number
    for number, name in enumerate(
        ("NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"),
        start=1,
    )
}
_OPTIMIZE = 8  # SCMP_FLTATR_CTL_OPTIMIZE; 2 is a binary tree instead of a chain of comparisons
_UNKNOWN = -1  # __NR_SCMP_ERROR
_EEXIST = 17


class Comparison(Struct, frozen=True):
    """A condition on one argument of a call; `second` is the value for MASKED_EQ, whose mask is `value`."""

    argument: int
    operator: str
    value: int
    second: int = 0


class SeccompRule(Struct, frozen=True):
    names: Sequence[str]
    action: str
    errno: int = 1
    arguments: Sequence[Comparison] = ()


class _Argument(ctypes.Structure):
    _fields_ = [
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    ]


class CompileError(Exception):
    """The library is missing or cannot express the filter."""


def compile_filter(default: str, errno: int, architectures: Sequence[str], rules: Sequence[SeccompRule]) -> bytes:
    """The BPF program, as seccomp(2) takes it. Calls that the library does not know are left to the default action."""
    library = _load()
    context = library.seccomp_init(_action(default, errno))
    if not context:
        raise CompileError("libseccomp cannot make a filter")
    try:
        _check(library.seccomp_attr_set(context, _OPTIMIZE, 2), "optimize")
        for name in architectures:
            token = library.seccomp_arch_resolve_name(name.removeprefix("SCMP_ARCH_").lower().encode())
            if token == 0:
                raise CompileError(f"unknown architecture {name}")
            if (result := library.seccomp_arch_add(context, token)) != -_EEXIST:
                _check(result, name)
        for rule in rules:
            _add(library, context, rule)
        return _export(library, context)
    finally:
        library.seccomp_release(context)


def _add(library: ctypes.CDLL, context: int, rule: SeccompRule) -> None:
    arguments = (_Argument * len(rule.arguments))(
        *(_Argument(item.argument, _operator(item.operator), item.value, item.second) for item in rule.arguments)
    )
    action = _action(rule.action, rule.errno)
    for name in rule.names:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number != _UNKNOWN:
            _check(library.seccomp_rule_add_array(context, action, number, len(arguments), arguments), name)


def _export(library: ctypes.CDLL, context: int) -> bytes:
    fd = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    try:
        _check(library.seccomp_export_bpf(context, fd), "export")
        return os.pread(fd, os.fstat(fd).st_size, 0)
    finally:
        os.close(fd)


def _action(name: str, errno: int) -> int:
    if name not in _ACTIONS:
        raise CompileError(f"unsupported action {name}")
    return _ACTIONS[name] | (errno & 0xFFFF if name == "SCMP_ACT_ERRNO" else 0)


def _operator(name: str) -> int:
    try:
        return _OPERATORS[name.removeprefix("SCMP_CMP_")]
    except KeyError:
        raise CompileError(f"unsupported operator {name}") from None


def _check(result: int, what: str) -> None:
    if result < 0:
        raise CompileError(f"libseccomp: {what}: {os.strerror(-result)}")


def _load() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError as error:
        raise CompileError(str(error)) from error
    signatures: Mapping[str, tuple[object, list[object]]] = {
        "seccomp_init": (ctypes.c_void_p, [ctypes.c_uint32]),
        "seccomp_release": (None, [ctypes.c_void_p]),
        "seccomp_attr_set": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32]),
        "seccomp_arch_resolve_name": (ctypes.c_uint32, [ctypes.c_char_p]),
        "seccomp_arch_add": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint32]),
        "seccomp_syscall_resolve_name": (ctypes.c_int, [ctypes.c_char_p]),
        "seccomp_rule_add_array": (
            ctypes.c_int,
            [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.POINTER(_Argument)],
        ),
        "seccomp_export_bpf": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
