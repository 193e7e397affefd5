from husk.cluster.port import crowding
from husk.cluster.port.crowding import BURST, PAUSE, Attempts, Crowd, place_of


def test_strangers_have_little_room_and_give_it_back() -> None:
    crowd = Crowd()
    assert all(crowd.welcome("192.0.2.1") for _ in range(crowding.MOST_OF_ADDRESS))
    assert not crowd.welcome("192.0.2.1"), "one address has no more"
    others = [f"192.0.2.{number}" for number in range(2, 2 + crowding.MOST_STRANGERS - crowding.MOST_OF_ADDRESS)]
    assert all(map(crowd.welcome, others))
    assert not crowd.welcome("198.51.100.1"), "nor have all of them together"
    crowd.farewell("192.0.2.1")
    assert crowd.welcome("198.51.100.1")
    for address in [*["192.0.2.1"] * (crowding.MOST_OF_ADDRESS - 1), *others, "198.51.100.1"]:
        crowd.farewell(address)
    assert crowd.strangers == 0 and not crowd._addresses


def test_nodes_have_a_share_of_their_own() -> None:
    crowd = Crowd()
    for _ in range(crowding.MOST_OF_NODE):
        assert crowd.welcome("192.0.2.1") and crowd.admit("192.0.2.1", "n")
    assert crowd.strangers == 0 and crowd.nodes == crowding.MOST_OF_NODE
    assert crowd.welcome("192.0.2.1") and not crowd.admit("192.0.2.1", "n"), "one node has no more"
    assert crowd.strangers == 1, "and is still to be sent away"
    assert crowd.admit("192.0.2.1", "other")
    crowd.part("n")
    assert crowd.welcome("192.0.2.1") and crowd.admit("192.0.2.1", "n")


def test_wrong_tokens_of_an_address() -> None:
    attempts = Attempts()
    for _ in range(BURST):
        assert attempts.allowed("192.0.2.1", 0)
        attempts.failed("192.0.2.1", 0)
    assert not attempts.allowed("192.0.2.1", 0)
    assert attempts.allowed("192.0.2.2", 0), "others may"
    assert not attempts.allowed("192.0.2.1", PAUSE - 0.1)
    assert attempts.allowed("192.0.2.1", PAUSE)
    attempts.failed("192.0.2.1", PAUSE)
    assert not attempts.allowed("192.0.2.1", PAUSE)
    assert attempts.allowed("192.0.2.1", 1000 * PAUSE)


def test_what_is_remembered_has_an_end() -> None:
    attempts = Attempts()
    for number in range(5000):
        attempts.failed(f"10.0.{number >> 8}.{number & 255}", 0)
    assert len(attempts._until) == crowding._MOST_REMEMBERED


def test_an_address_that_its_owner_can_change_is_none() -> None:
    assert place_of("2001:db8::1") == place_of("2001:db8::ffff:2") == "2001:db8::/64" != place_of("2001:db8:0:1::1")
    assert place_of("::ffff:192.0.2.1") == place_of("192.0.2.1") == "192.0.2.1"
    assert place_of("fe80::1%eth0") == "fe80::/64"
    assert place_of("") == ""
