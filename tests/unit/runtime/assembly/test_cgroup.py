from unittest.mock import Mock

import pytest

from husk.errors import SystemFault
from husk.kernel import cgroup_parents, cgroups
from husk.runtime.assembly import cgroup


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Writes down what is asked of the kernel, in order."""
    double = Mock()
    for name in ("remove", "kill_all", "inherit_processors"):
        monkeypatch.setattr(cgroups, name, getattr(double, name))
    for name in ("make", "grant_realtime"):
        monkeypatch.setattr(cgroup_parents, name, getattr(double, name))
    monkeypatch.setattr(cgroup_parents, "remove", double.remove_parents)
    return double


def asked(kernel: Mock) -> list[str]:
    return [name for name, _, _ in kernel.method_calls]


def test_what_is_above_a_group_is_made_only_where_a_client_named_it(kernel: Mock) -> None:
    cgroup.make_parents("/husk/1", named=False, realtime=None, period=None)
    assert asked(kernel) == ["inherit_processors"]
    kernel.inherit_processors.assert_called_once_with("/husk")
    cgroup.make_parents("/mine/1", named=True, realtime=950, period=None)
    kernel.make.assert_called_once_with("/mine/1")
    kernel.grant_realtime.assert_called_once_with("/mine/1", 950, 0)


def test_an_empty_group_is_removed_at_once(kernel: Mock) -> None:
    cgroup.clear("/husk/1", named=False)
    assert asked(kernel) == ["remove"]


def test_processes_that_are_left_in_a_group_are_killed(kernel: Mock) -> None:
    kernel.remove.side_effect = [SystemFault("busy"), None]
    cgroup.clear("/mine/1", named=True)
    assert asked(kernel) == ["remove", "kill_all", "remove", "remove_parents"]
