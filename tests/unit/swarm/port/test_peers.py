import pytest

from husk.errors import Forbidden, Unauthorized
from husk.swarm.ca.holders import Holder, Role
from husk.swarm.port.peers import Access, Peer, peer_of, refusal

SUBJECT = ((("organizationName", "s"),), (("organizationalUnitName", "swarm-worker"),), (("commonName", "w"),))


class Members:
    swarm = "s"

    def role(self, node: str) -> Role | None:
        roles: dict[str, Role] = {"m": "manager", "w": "worker", "promoted": "manager", "demoted": "worker"}
        return roles.get(node)


def peer(node: str, role: Role, swarm: str = "s") -> Peer:
    return Peer("192.0.2.1", Holder(node, role, swarm), 100.0)


NOBODY = Peer("192.0.2.1")
MANAGER, WORKER = peer("m", "manager"), peer("w", "worker")


@pytest.mark.parametrize(
    ("who", "access"),
    [(NOBODY, "anybody"), (WORKER, "anybody"), (WORKER, "node"), (MANAGER, "node"), (MANAGER, "manager")],
)
def test_who_may(who: Peer, access: Access) -> None:
    assert refusal(who, access, Members(), 0) is None


@pytest.mark.parametrize(
    ("who", "access", "now", "error", "said"),
    [
        (NOBODY, "node", 0, Unauthorized, "none was shown"),
        (NOBODY, "manager", 0, Unauthorized, "none was shown"),
        (WORKER, "manager", 0, Forbidden, "managers only"),
        (peer("demoted", "manager"), "manager", 0, Forbidden, "managers only"),
        (peer("promoted", "worker"), "manager", 0, Forbidden, "managers only"),
        (peer("removed", "manager"), "node", 0, Forbidden, "does not belong"),
        (peer("m", "manager", "other"), "node", 0, Forbidden, "another swarm"),
        (MANAGER, "manager", 100, Unauthorized, "expired"),
    ],
)
def test_who_may_not(who: Peer, access: Access, now: float, error: type[Exception], said: str) -> None:
    found = refusal(who, access, Members(), now)
    assert isinstance(found, error) and said in found.message


def test_a_peer_is_read_from_its_certificate() -> None:
    shown = {"subject": SUBJECT, "notAfter": "Jan  5 09:34:43 2038 GMT"}
    found = peer_of("192.0.2.1", shown, b"der")
    assert found == Peer("192.0.2.1", Holder("w", "worker", "s"), 2146296883.0, b"der")
    assert found.node == "w" and str(found) == "node w at 192.0.2.1"
    assert peer_of("192.0.2.1", {}) == peer_of("192.0.2.1", None) == NOBODY
    assert peer_of("192.0.2.1", {"subject": SUBJECT[:2], "notAfter": "Jan  5 09:34:43 2038 GMT"}) is None
    assert str(NOBODY) == "somebody at 192.0.2.1"
