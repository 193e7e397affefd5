"""The crowd of clients: who may come, who has kept us waiting, and how they all go."""

import asyncio
from email.utils import formatdate

import pytest

from husk.api.http.channel import Channel
from husk.api.http.crowd import Crowd, place_of
from husk.api.http.limits import HttpLimits
from tests.unit.api.loops import until


class Guest(Channel):
    """A client that does what the test says."""

    def __init__(self, peer: str | None = None) -> None:
        super().__init__()
        self._peer = peer
        self.is_busy = False
        self.late = False
        self.told: list[str] = []

    @property
    def busy(self) -> bool:
        return self.is_busy

    @property
    def waiting(self) -> bool:
        return not self.is_busy

    def overdue(self, now: float) -> bool:
        return self.late

    def give_up_on(self) -> None:
        self.late = False
        self.told.append("give up")

    def finish(self) -> None:
        self.told.append("finish")

    def close(self) -> None:
        self.told.append("close")

    def abort(self) -> None:
        self.told.append("abort")


async def test_each_limit_counts_for_itself_and_who_leaves_makes_room(caplog: pytest.LogCaptureFixture) -> None:
    crowd = Crowd(HttpLimits(connections=4, remote_connections=3, peer_connections=2))
    first, second = Guest("10.0.0.1"), Guest("10.0.0.1")
    assert crowd.admit(first) and crowd.admit(second)
    assert not crowd.admit(Guest("10.0.0.1"))
    other = Guest("10.0.0.2")
    assert crowd.admit(other)
    assert not crowd.admit(Guest("10.0.0.3"))  # no more from outside
    local = Guest()
    assert crowd.admit(local)
    assert not crowd.admit(Guest())  # no more at all
    assert len(crowd) == 4
    crowd.leave(first)
    assert crowd.admit(Guest("10.0.0.1"))
    crowd.leave(local)
    assert crowd.admit(Guest())
    assert caplog.text.count("turned away") == 1
    await crowd.close()


async def test_the_oldest_idle_one_of_an_address_makes_room_for_its_next() -> None:
    crowd = Crowd(HttpLimits(connections=9, remote_connections=5, peer_connections=3, makes_room=True))
    guests = [Guest("10.0.0.1") for _ in range(3)]
    guests[0].is_busy = True
    assert all(map(crowd.admit, guests))
    late = Guest("10.0.0.1")
    assert crowd.admit(late) and [guest.told for guest in guests] == [[], ["abort"], []]
    crowd.leave(guests[1])
    for guest in (guests[2], late):
        guest.is_busy = True
    assert not crowd.admit(Guest("10.0.0.1")), "all of them are served"
    others = [Guest("10.0.0.2"), Guest("10.0.0.3")]
    assert all(map(crowd.admit, others)) and not crowd.admit(Guest("10.0.0.4")), "of others none goes"
    for guest in (guests[0], guests[2], late, *others):
        crowd.leave(guest)
    assert len(crowd) == 0
    assert all(crowd.admit(Guest(f"10.0.1.{number}")) for number in range(5)), "all room is there again"
    await crowd.close()


def test_tunnels_count_their_clients_themselves() -> None:
    crowd = Crowd(HttpLimits(remote_connections=2, peer_connections=1))
    first = Guest()
    assert crowd.welcome(first, "a")
    assert not crowd.welcome(Guest(), "a")
    assert crowd.welcome(Guest(), "b")
    assert not crowd.welcome(Guest(), "c")
    crowd.farewell(first)
    crowd.farewell(first)
    assert crowd.welcome(Guest(), "a")


async def test_where_all_room_is_taken_the_oldest_idle_one_of_the_greediest_goes() -> None:
    crowd = Crowd(HttpLimits(connections=20, remote_connections=6, peer_connections=4, makes_room=True))
    # One network of IPv6 is one owner.
    greedy = [Guest(f"2001:db8::{number}") for number in range(4)]
    others = [Guest("192.0.2.1"), Guest("192.0.2.2")]
    greedy[0].is_busy = True
    assert all(map(crowd.admit, [*greedy, *others]))
    late = Guest("192.0.2.3")
    assert crowd.admit(late)
    assert [guest.told for guest in (*greedy, *others, late)] == [[], ["abort"], [], [], [], [], []]
    crowd.leave(greedy[1])
    assert len(crowd) == 6
    # With those who have as many as the one who comes it is not shared out.
    last = Guest("192.0.2.3")
    assert crowd.admit(last) and greedy[2].told == ["abort"]
    assert not crowd.admit(Guest("192.0.2.3"))
    await crowd.close()
    for guest in (*greedy, *others, late, last):
        crowd.farewell(guest)
    assert all(crowd.welcome(Guest(), place) for place in ("192.0.2.1", "192.0.2.2") for _ in range(3)), "none is left"


def test_addresses_count_by_their_owners() -> None:
    assert place_of("::ffff:192.0.2.1") == "192.0.2.1" and place_of("fe80::1%eth0") == "fe80::/64"
    assert place_of("no address") == "no address"


async def test_only_who_is_overdue_is_given_up_on() -> None:
    crowd = Crowd(HttpLimits(head_time=0.04))
    guests = [Guest(), Guest()]
    for guest in guests:
        crowd.admit(guest)
    guests[0].late = True
    await until(lambda: guests[0].told)
    guests[1].late = True  # it is looked at again and again
    await until(lambda: guests[1].told)
    assert guests[0].told == guests[1].told == ["give up"]
    await crowd.close()


async def test_it_is_quiet_when_nobody_is_busy() -> None:
    crowd = Crowd(HttpLimits())
    guests = [Guest(), Guest()]
    for guest in guests:
        guest.is_busy = True
        crowd.admit(guest)
    quiet = asyncio.get_running_loop().create_task(crowd.quiet())
    guests[0].is_busy = False
    crowd.settled()
    await asyncio.sleep(0)
    assert not quiet.done()
    crowd.leave(guests[1])
    await asyncio.wait_for(quiet, 5)
    crowd.finish()
    await crowd.close()
    assert (guests[0].told, guests[1].told) == (["finish", "close", "abort"], [])


def test_the_date_is_made_once_a_second() -> None:
    crowd = Crowd(HttpLimits())
    assert crowd.date() is crowd.date()
    assert crowd.date().startswith(b"Date: ") and crowd.date().endswith(b" GMT\r\n")


@pytest.mark.parametrize("wall", [0.0, 951782399.9, 1763287200.5, 4102444799.0])
def test_a_date_is_written_as_the_standard_library_writes_it(wall: float) -> None:
    assert Crowd(HttpLimits(), lambda: wall).date() == f"Date: {formatdate(wall, usegmt=True)}\r\n".encode()
