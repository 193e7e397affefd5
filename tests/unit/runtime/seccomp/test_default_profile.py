import re
from pathlib import Path
from typing import Any, cast

import pytest

from husk.runtime.seccomp import default_profile
from husk.runtime.seccomp.default_profile import ALLOWED, BY_CAPABILITY, CONDITIONAL, DENIED, profile
from husk.runtime.spec import capabilities

HEADERS = Path("/usr/include/x86_64-linux-gnu/asm")
OPENED = frozenset().union(*BY_CAPABILITY.values())


def rules(granted: tuple[str, ...], architecture: str = "amd64") -> list[dict[str, Any]]:
    result = profile(granted, architecture)
    assert result is not None
    return cast("list[dict[str, Any]]", result["syscalls"])


def allowed(granted: tuple[str, ...]) -> set[str]:
    return set(rules(granted)[0]["names"])


@pytest.mark.skipif(not HEADERS.exists(), reason="needs the kernel headers of x86")
@pytest.mark.parametrize("table", ["unistd_64.h", "unistd_32.h"])
def test_no_call_of_the_kernels_table_is_undecided(table: str) -> None:
    names = set(re.findall(r"#define __NR_(\w+)\s", (HEADERS / table).read_text()))
    assert names - ALLOWED - DENIED - CONDITIONAL - OPENED == set()


def test_no_call_is_in_two_lists() -> None:
    assert ALLOWED & DENIED == ALLOWED & CONDITIONAL == ALLOWED & OPENED == DENIED & OPENED == frozenset()


def test_what_is_in_no_list_fails_with_eperm() -> None:
    result = profile(capabilities.DEFAULT, "amd64")
    assert result is not None
    assert (result["defaultAction"], result["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 1)


def test_a_plain_container_may_not_reach_beyond_itself() -> None:
    names = allowed(capabilities.DEFAULT)
    assert not names & {"mount", "unshare", "setns", "bpf", "keyctl", "reboot", "init_module", "kexec_load", "clone"}
    assert {"execve", "openat", "chroot", "ptrace"} <= names


@pytest.mark.parametrize("capability", sorted(BY_CAPABILITY))
def test_a_capability_opens_exactly_its_calls(capability: str) -> None:
    assert capability in capabilities.ALL
    assert allowed((capability,)) == ALLOWED | BY_CAPABILITY[capability]


def test_new_namespaces_need_the_right_to_administer() -> None:
    (clone,) = (rule for rule in rules(()) if rule["names"] == ["clone"])
    assert clone["args"] == [{"index": 0, "value": 0x7E020000, "op": "SCMP_CMP_MASKED_EQ", "valueTwo": 0}]
    (clone3,) = (rule for rule in rules(()) if rule["names"] == ["clone3"])
    assert (clone3["action"], clone3["errnoRet"]) == ("SCMP_ACT_ERRNO", 38)
    assert {"clone", "clone3"} <= allowed(("CAP_SYS_ADMIN",))


def test_the_flags_of_clone_are_the_second_argument_on_s390() -> None:
    (clone,) = (rule for rule in rules((), "s390x") if rule["names"] == ["clone"])
    assert clone["args"][0]["index"] == 1


def test_go_and_kernel_names_of_an_architecture_mean_the_same() -> None:
    assert profile((), "amd64") == profile((), "x86_64")
    assert profile((), "arm64") == profile((), "aarch64")
    assert profile((), "vax") is None


def test_the_profile_is_a_value_of_its_own() -> None:
    first = default_profile.profile((), "amd64")
    assert first is not None
    first.clear()
    assert default_profile.profile((), "amd64") != {}
