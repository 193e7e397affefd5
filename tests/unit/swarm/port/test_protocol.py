import pytest

from husk.errors import Conflict
from husk.swarm.port.protocol import OWN, ProtocolVersion, check
from husk.version import CLUSTER_PROTOCOL, __version__


def test_we_tell_what_we_are() -> None:
    assert ProtocolVersion(CLUSTER_PROTOCOL, __version__) == OWN


@pytest.mark.parametrize(("node", "manager"), [(0, 0), (0, 1), (1, 0), (0, 2), (3, 3), (3, 4), (4, 3)])
def test_neighbours_work_together(node: int, manager: int) -> None:
    """One that tells no version speaks the first."""
    check(node=ProtocolVersion(node, "0.3.0"), manager=ProtocolVersion(manager, "0.4.0"))


@pytest.mark.parametrize(("node", "manager"), [(0, 3), (3, 1), (1, 3), (5, 2)])
def test_others_do_not_and_hear_who_is_what(node: int, manager: int) -> None:
    with pytest.raises(Conflict, match="too far apart: upgrade the older one first") as told:
        check(node=ProtocolVersion(node, "9.9"), manager=ProtocolVersion(manager, ""))
    assert f"this node (Husk 9.9) speaks version {node or 1}" in told.value.message
    assert f"the manager (Husk 0.1) version {manager}" in told.value.message
