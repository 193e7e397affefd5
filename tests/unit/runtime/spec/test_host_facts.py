"""Facts that the kernel tells about this host, and what follows from them."""

from pathlib import Path

import pytest

from husk.runtime.spec import capabilities
from husk.runtime.spec.host_facts import HostFacts, online, read_host_facts


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
