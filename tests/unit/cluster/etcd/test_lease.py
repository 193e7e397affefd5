"""When a lease is renewed; leases of a real etcd are in tests/integration/cluster/etcd/test_lease.py."""

import pytest

from husk.cluster.etcd.lease import pause


@pytest.mark.parametrize(
    ("left", "wanted"),
    [(15.0, 5.0), (10.0, 5.0), (4.0, 2.0), (0.1, 0.1), (-3.0, 0.1)],
    ids=["granted at once", "as usual", "an answer that came late", "hardly in time", "too late"],
)
def test_a_lease_is_renewed_before_it_is_over(left: float, wanted: float) -> None:
    assert pause(15.0, left) == wanted
