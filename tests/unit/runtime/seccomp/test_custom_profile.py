"""A client's own seccomp profile, in Docker's format, as it applies to one container on one host."""

import json

import pytest

from husk.errors import InvalidParameter
from husk.runtime.seccomp.custom_profile import parse, resolve

ALLOW = {"defaultAction": "SCMP_ACT_ALLOW"}


def resolved(document: object, *capabilities: str, machine: str = "x86_64", kernel: str = "6.1.0") -> object:
    return resolve(parse(json.dumps(document)), capabilities, machine, kernel)


def rule(**more: object) -> dict[str, object]:
    return {"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", **more}


def test_what_oci_has_too_stays() -> None:
    full = {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 38,
        "architectures": ["SCMP_ARCH_X86_64"],
        "flags": ["SECCOMP_FILTER_FLAG_LOG"],
        "syscalls": [
            {
                "names": ["personality"],
                "action": "SCMP_ACT_ALLOW",
                "args": [{"index": 0, "value": 8, "valueTwo": 0, "op": "SCMP_CMP_EQ"}],
            },
        ],
    }
    assert resolved(full) == full


def test_a_profile_without_rules_is_none() -> None:
    assert resolved({}) is None
    assert resolved(ALLOW) == ALLOW


def test_the_old_form_names_one_call() -> None:
    assert resolved({**ALLOW, "syscalls": [{"name": "mkdir", "action": "SCMP_ACT_ERRNO"}]}) == {
        **ALLOW,
        "syscalls": [rule()],
    }


@pytest.mark.parametrize(
    ("conditions", "capabilities", "kept"),
    [
        ({}, (), True),
        ({"includes": {"caps": ["CAP_SYS_ADMIN"]}}, (), False),
        ({"includes": {"caps": ["CAP_SYS_ADMIN"]}}, ("CAP_SYS_ADMIN",), True),
        ({"includes": {"caps": ["CAP_A", "CAP_B"]}}, ("CAP_A",), False),
        ({"excludes": {"caps": ["CAP_SYS_ADMIN"]}}, ("CAP_SYS_ADMIN",), False),
        ({"excludes": {"caps": ["CAP_SYS_ADMIN"]}}, (), True),
        ({"includes": {"arches": ["amd64", "x32"]}}, (), True),
        ({"includes": {"arches": ["arm64"]}}, (), False),
        ({"excludes": {"arches": ["amd64"]}}, (), False),
        ({"includes": {"minKernel": "4.8"}}, (), True),
        ({"includes": {"minKernel": "6.2"}}, (), False),
        ({"excludes": {"minKernel": "4.8"}}, (), False),
        ({"includes": {"minKernel": "9" * 5000 + ".1"}}, (), True),
        ({"includes": {}, "excludes": {}, "comment": "x", "args": None}, (), True),
    ],
)
def test_conditions(conditions: dict[str, object], capabilities: tuple[str, ...], kept: bool) -> None:
    found = resolved({**ALLOW, "syscalls": [rule(**conditions)]}, *capabilities)
    assert found == ({**ALLOW, "syscalls": [rule()]} if kept else ALLOW)


def test_the_hosts_architecture_brings_its_relatives() -> None:
    arch_map = [
        {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]},
        {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]},
    ]
    for machine, architectures in (
        ("x86_64", ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"]),
        ("aarch64", ["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"]),
    ):
        found = resolved({**ALLOW, "archMap": arch_map}, machine=machine)
        assert found == {**ALLOW, "architectures": architectures}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"defaultAction": "SCMP_ACT_FOO"}, "string SCMP_ACT_FOO is not a valid action for seccomp"),
        ({**ALLOW, "syscalls": [rule(action="x")]}, "string x is not a valid action for seccomp"),
        ({**ALLOW, "syscalls": [rule(name="rmdir")]}, "'name' and 'names' were specified in the seccomp profile"),
        (
            {**ALLOW, "architectures": ["a"], "archMap": [{"architecture": "a"}]},
            "'architectures' and 'archMap' were specified in the seccomp profile",
        ),
        (
            {**ALLOW, "syscalls": [rule(args=[{"index": 0, "value": 1, "op": "x"}])]},
            "string x is not a valid operator for seccomp",
        ),
    ],
)
def test_contradictions(document: object, message: str) -> None:
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        parse(json.dumps(document))
