"""The rules of the device: there while it is, and again when somebody has removed them. The kernel is a double."""

import pytest

from husk.network.wireguard.fence import Fence
from tests.support.rules import FakeRules


@pytest.fixture
def kernel() -> FakeRules:
    return FakeRules("husk-wg")


def fence_of(kernel: FakeRules) -> Fence:
    return Fence(kernel.table, kernel.run, kernel.shape)


def test_nothing_is_missing_where_nothing_is_needed(kernel: FakeRules) -> None:
    fence = fence_of(kernel)
    fence.apply()
    assert fence.intact() and kernel.ran == [] and fence.table == "husk-wg"


@pytest.mark.parametrize("there", [True, False])
def test_what_somebody_removed_is_written_again(kernel: FakeRules, there: bool) -> None:
    fence = fence_of(kernel)
    fence.put("wg-husk", "fe80::1", 4789)
    if not there:
        kernel.lose()
    assert fence.intact() is there
    fence.apply()
    ran = kernel.ran
    assert fence.intact() and ran[0] == ran[1] and "wg-husk" in ran[0]
    fence.remove()
    assert fence.intact() and ran[2].endswith("delete table ip6 husk-wg\n")
    fence.apply()
    assert len(ran) == 3


def test_what_cannot_be_looked_at_is_not_missing(kernel: FakeRules) -> None:
    fence = fence_of(kernel)
    fence.put("wg-husk", "fe80::1", 4789)
    kernel.fails = OSError(105, "No buffer space available")
    with pytest.raises(OSError, match="No buffer space"):
        fence.intact()
