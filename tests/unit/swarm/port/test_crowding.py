from husk.swarm.port import crowding
from husk.swarm.port.crowding import BURST, PAUSE, Attempts, ConnectionCrowd, Pauses, UnknownVisit, place_of


def come(crowd: ConnectionCrowd, address: str, times: int = 1) -> list[UnknownVisit]:
    """So many of an address, for whom nobody has to go."""
    made = [crowd.welcome(address) for _ in range(times)]
    assert all(leaving is None for _, leaving in made)
    return [visit for visit, _ in made]


def test_strangers_have_little_room_and_give_it_back() -> None:
    crowd = ConnectionCrowd()
    first = come(crowd, "192.0.2.1", crowding.MOST_OF_ADDRESS)
    last, leaving = crowd.welcome("192.0.2.1")
    assert leaving is first[0], "one address has no more: its oldest goes"
    others = [visit for number in range(2, 6) for visit in come(crowd, f"192.0.2.{number}", 12)]
    assert crowd.strangers == crowding.MOST_STRANGERS
    newest, leaving = crowd.welcome("198.51.100.1")
    assert leaving is first[1], "all together have no more: the oldest of those goes that are the most"
    assert crowd.strangers == crowding.MOST_STRANGERS
    for visit in [*first, last, *others, newest, newest]:
        crowd.farewell(visit)
    assert crowd.strangers == 0


def test_many_addresses_lose_their_oldest() -> None:
    crowd = ConnectionCrowd()
    visits = [come(crowd, f"192.0.2.{number}")[0] for number in range(crowding.MOST_STRANGERS)]
    assert crowd.welcome("198.51.100.1")[1] is visits[0]


def test_who_comes_from_where_a_node_was_heard_has_places_of_its_own() -> None:
    crowd = ConnectionCrowd()
    (visit,) = come(crowd, "192.0.2.9")
    assert crowd.admit(visit, "n")
    crowd.part("n")
    for number in range(2 * crowding.MOST_STRANGERS):
        crowd.welcome(f"198.51.100.{number}")
    (again,) = come(crowd, "192.0.2.9")
    for number in range(2 * crowding.MOST_STRANGERS):
        assert crowd.welcome(f"198.51.100.{number}")[1] is not again
    assert crowd.strangers == crowding.MOST_STRANGERS + 1 and crowd.admit(again, "n")


def test_hundreds_of_nodes_that_come_at_once_wait_for_their_turn() -> None:
    crowd = ConnectionCrowd()
    places = [f"192.0.{number // 250}.{number % 250}" for number in range(450)]
    coming = [crowd.welcome(place, home=True) for place in places]
    assert all(leaving is None and visit.waits for visit, leaving in coming)
    order: list[str] = []
    while turns := crowd.turns():
        assert len(turns) <= crowding.MOST_TURNS
        order += [visit.place for visit in turns]
        assert crowd.turns() == []
        for visit in turns:
            assert crowd.admit(visit, visit.place)
    assert order == places and crowd.strangers == 0


def test_one_address_takes_no_turns_of_others() -> None:
    crowd = ConnectionCrowd()
    greedy = [crowd.welcome("192.0.2.1", home=True)[0] for _ in range(crowding.MOST_OF_ADDRESS)]
    last, leaving = crowd.welcome("192.0.2.1", home=True)
    assert leaving is greedy[0]
    other, _ = crowd.welcome("192.0.2.2", home=True)
    assert crowd.turns() == [*greedy[1 : 1 + crowding.MOST_TURNS_OF_ADDRESS], other]
    crowd.farewell(greedy[1])
    assert crowd.turns() == [greedy[1 + crowding.MOST_TURNS_OF_ADDRESS]]
    stranger, _ = crowd.unmask(greedy[2])
    assert not stranger.waits and crowd.turns() == [greedy[2 + crowding.MOST_TURNS_OF_ADDRESS]], "it has no certificate"
    crowd.farewell(stranger)
    assert last.waits and crowd.unmask(come(crowd, "198.51.100.1")[0])[1] is None


def test_nodes_have_a_share_of_their_own() -> None:
    crowd = ConnectionCrowd()
    for _ in range(crowding.MOST_OF_NODE):
        assert crowd.admit(come(crowd, "192.0.2.1")[0], "n")
    assert crowd.strangers == 0 and crowd.nodes == crowding.MOST_OF_NODE
    (one,) = come(crowd, "192.0.2.1")
    assert not crowd.admit(one, "n"), "one node has no more"
    assert crowd.strangers == 1, "and is still to be sent away"
    assert crowd.admit(one, "other")
    crowd.part("n")
    assert crowd.admit(come(crowd, "192.0.2.1")[0], "n")


def test_once_in_a_while() -> None:
    pauses = Pauses(2.0)
    assert pauses.allowed("n", 0.0) and pauses.allowed("other", 0.0)
    assert not pauses.allowed("n", 1.9)
    assert pauses.allowed("n", 2.0) and not pauses.allowed("n", 3.9)


def test_what_was_not_done_is_taken_back_and_nothing_else() -> None:
    pauses = Pauses(2.0)
    assert pauses.allowed("n", 0.0)
    pauses.take_back("n", 0.0)
    assert pauses.allowed("n", 0.5) and pauses.allowed("n", 2.5)
    pauses.take_back("n", 0.5)
    pauses.take_back("other", 0.5)
    assert not pauses.allowed("n", 3.0), "the second one was done"


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
    attempts, pauses = Attempts(), Pauses(10.0)
    for _ in range(BURST):
        attempts.failed("192.0.2.1", 0)
    assert not attempts.allowed("192.0.2.1", 0)
    assert pauses.allowed("n", 0.0) and not pauses.allowed("n", 0.0)
    for number in range(5000):
        attempts.failed(f"10.0.{number >> 8}.{number & 255}", 0)
        assert pauses.allowed(str(number), 0.0)
    assert attempts.allowed("192.0.2.1", 0) and pauses.allowed("n", 0.0), "the oldest are forgotten"
    assert not pauses.allowed("4999", 0.0)


def test_an_address_that_its_owner_can_change_is_none() -> None:
    assert place_of("2001:db8::1") == place_of("2001:db8::ffff:2") == "2001:db8::/64" != place_of("2001:db8:0:1::1")
    assert place_of("::ffff:192.0.2.1") == place_of("192.0.2.1") == "192.0.2.1"
    assert place_of("fe80::1%eth0") == "fe80::/64"
    assert place_of("") == ""
