"""Limits that leave room for others."""

import pytest

from husk.api.http.limits import HttpLimits


@pytest.mark.parametrize(("descriptors", "all", "remote"), [(1024, 512, 448), (1 << 20, 8192, 7168), (1, 1, 1)])
def test_limits_within_what_the_process_may_open(descriptors: int, all: int, remote: int) -> None:
    limits = HttpLimits().within(descriptors)
    assert (limits.connections, limits.remote_connections) == (all, remote)
