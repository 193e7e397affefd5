import base64

import pytest

from husk.runtime.seccomp import default_profile
from husk.runtime.seccomp.precompiled import ANNOTATION, CompiledFilters
from husk.runtime.spec import capabilities


async def test_a_profile_becomes_a_program_for_the_kernel() -> None:
    annotations = await CompiledFilters().annotations(default_profile.profile(capabilities.DEFAULT, "amd64"))
    program = base64.b64decode(annotations[ANNOTATION])
    assert len(program) % 8 == 0
    # The kernel takes 4096 instructions.
    assert 0 < len(program) // 8 <= 4096


async def test_the_same_profile_is_compiled_once_and_another_one_apart() -> None:
    filters = CompiledFilters()
    plain = default_profile.profile(capabilities.DEFAULT, "amd64")
    mighty = default_profile.profile(capabilities.ALL, "amd64")
    first = await filters.annotations(plain)
    assert await filters.annotations(plain) is first
    assert await filters.annotations(mighty) != first


async def test_without_a_profile_there_is_nothing_to_add() -> None:
    assert await CompiledFilters().annotations(None) == {}


async def test_what_cannot_be_compiled_here_is_left_to_the_runtime() -> None:
    filters = CompiledFilters()
    assert await filters.annotations({"defaultAction": "SCMP_ACT_NOTIFY"}) == {}
    assert await filters.annotations({"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_VAX"]}) == {}
    assert await filters.annotations({"defaultAction": "SCMP_ACT_ERRNO", "listenerPath": "/x"}) == {}


def rule(names: list[str], *arguments: int) -> dict[str, object]:
    args = [{"index": index, "value": 5, "op": "SCMP_CMP_GT"} for index in arguments]
    return {"names": names, "action": "SCMP_ACT_ALLOW", "args": args}


@pytest.mark.parametrize(
    "slow",
    [
        {"syscalls": [rule(["read"], 0, 1, 2, 3, 4, 5)] * 40},
        {"syscalls": [rule(["read"] * 400_000)]},
        {"syscalls": [rule(["read", "write"], number % 6) for number in range(5000)]},
        {"syscalls": [rule(["read"])], "architectures": ["SCMP_ARCH_X86_64"] * 200_000},
    ],
)
async def test_what_takes_long_is_not_compiled_where_nobody_can_end_it(slow: dict[str, object]) -> None:
    assert await CompiledFilters().annotations({"defaultAction": "SCMP_ACT_ERRNO", **slow}) == {}


async def test_a_profile_of_some_comparisons_is_compiled() -> None:
    rules = [rule(["personality"], 0)] * 6 + [rule(["clone"], 0), rule(["socket"], 0), rule(["read", "write"])]
    assert await CompiledFilters().annotations({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": rules}) != {}
