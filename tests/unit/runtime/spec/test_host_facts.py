"""Facts that the kernel tells about this host, and what follows from them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from husk.runtime.spec import capabilities
from husk.runtime.spec.document import Resources, Rlimit, RuntimeContainer, Throttle
from husk.runtime.spec.host_facts import HostFacts, clamp, online, read_host_facts


def test_the_host_tells_its_rights_and_limits() -> None:
    facts = read_host_facts()
    assert facts.capabilities <= frozenset(capabilities.ALL)
    assert "RLIMIT_NOFILE" in facts.hard_limits
    assert facts.cgroup_v2 == (facts.cgroup_mode == "v2")


@pytest.mark.parametrize("may", [True, False])
def test_who_has_the_right_may_raise_limits(may: bool) -> None:
    rights = frozenset(capabilities.ALL) - (frozenset() if may else {"CAP_SYS_RESOURCE"})
    assert HostFacts(capabilities=rights).may_raise is may


def test_what_is_online_is_as_the_kernel_says_or_the_first_alone(tmp_path: Path) -> None:
    (tmp_path / "online").write_text("0-3,5\n")
    assert online(str(tmp_path / "online")) == "0-3,5"
    assert online(str(tmp_path / "absent")) == "0"


SPEC = RuntimeContainer(rootfs="/r", args=("sh",), capabilities=capabilities.DEFAULT)
RICH = HostFacts()
POOR = HostFacts(
    capabilities=frozenset(capabilities.ALL) - {"CAP_SYS_RESOURCE"},
    hard_limits={"RLIMIT_NOFILE": 20000, "RLIMIT_CORE": -1},
    cgroup_mode="hybrid",
    controllers=frozenset({"cpu", "cpuset", "blkio", "memory", "pids"}),
)


def test_a_host_with_all_rights_changes_nothing() -> None:
    spec = replace(SPEC, rlimits=(Rlimit("RLIMIT_NOFILE", 2**20, 2**20),), oom_score_adj=-900)
    assert clamp(spec, RICH) == (spec, [])


@given(st.integers(-1, 10**6), st.integers(-1, 10**6))
def test_no_limit_is_higher_than_the_host_allows(soft: int, hard: int) -> None:
    clamped, warnings = clamp(replace(SPEC, rlimits=(Rlimit("RLIMIT_NOFILE", soft, hard),)), POOR)
    (limit,) = clamped.rlimits
    assert 0 <= limit.hard <= 20000
    assert bool(warnings) == (hard < 0 or hard > 20000)
    if not warnings:
        assert limit == Rlimit("RLIMIT_NOFILE", soft, hard)


def test_a_limit_that_the_host_does_not_bound_stays() -> None:
    spec = replace(SPEC, rlimits=(Rlimit("RLIMIT_CORE", -1, -1),))
    assert clamp(spec, POOR) == (spec, [])


def test_the_oom_score_is_not_lowered_without_the_right_to() -> None:
    clamped, warnings = clamp(replace(SPEC, oom_score_adj=-500), POOR)
    assert clamped.oom_score_adj == 0
    assert len(warnings) == 1
    assert clamp(replace(SPEC, oom_score_adj=500), POOR)[0].oom_score_adj == 500


def test_a_capability_that_the_host_lacks_is_left_out_with_a_warning() -> None:
    spec = replace(SPEC, capabilities=("CAP_CHOWN", "CAP_SYS_RESOURCE"))
    clamped, warnings = clamp(spec, POOR)
    assert clamped.capabilities == ("CAP_CHOWN",)
    assert "CAP_SYS_RESOURCE" in warnings[0]


def test_limits_without_a_controller_are_discarded_in_dockers_words() -> None:
    bare = replace(POOR, controllers=frozenset())
    limits = Resources(memory=1, cpu_shares=2, cpuset_cpus="0", pids_limit=3, blkio_read_bps=(Throttle(8, 0, 1),))
    clamped, warnings = clamp(replace(SPEC, resources=limits), bare)
    assert clamped.resources == Resources()
    assert len(warnings) == 5
    assert (
        "Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded."
        in warnings
    )


def test_without_swap_accounting_memory_is_limited_without_swap() -> None:
    clamped, warnings = clamp(
        replace(SPEC, resources=Resources(memory=10, memory_swap=20)), replace(POOR, swap_limit=False)
    )
    assert clamped.resources == Resources(memory=10)
    assert warnings[0].endswith("Memory limited without swap.")


@pytest.mark.parametrize("limits", [Resources(oom_kill_disable=True), Resources(memory_swappiness=10)])
def test_what_the_second_version_of_cgroups_lacks_is_discarded_with_a_warning(limits: Resources) -> None:
    limited = replace(limits, memory=10)
    assert clamp(replace(SPEC, resources=limited), POOR)[1] == []
    clamped, warnings = clamp(replace(SPEC, resources=limits), RICH)
    assert clamped.resources == Resources()
    assert len(warnings) == 1
