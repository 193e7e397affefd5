"""Nodes on the same networks have one view, and whatever they were told before, they know all of it afterwards."""

import random

from msgspec import Struct

from husk.swarm.network.views import KEPT, NOTHING, Name, NetworkShare, Records, View, Views, news, succeed


class Thing(Struct):
    value: int


def records(**values: int) -> Records:
    return {("kind", key): Thing(value) for key, value in values.items()}


def test_a_view_is_the_former_one_where_nothing_differs() -> None:
    first = succeed(None, records(a=1, b=2))
    assert succeed(first, records(a=1, b=2)) is first
    second = succeed(first, records(a=1, b=3, c=4))
    assert second.records["kind", "a"] is first.records["kind", "a"], "kept once"
    assert second.differs(first) == {("kind", "b"), ("kind", "c")} and second.differs(second) == set()
    third = succeed(second, records(b=3))
    assert third.differs(second) == {("kind", "a"), ("kind", "c")}
    assert third.differs(first) == {("kind", "a"), ("kind", "b"), ("kind", "c")}


def test_who_has_a_view_of_long_ago_is_compared_with_it() -> None:
    first = view = succeed(None, records(a=0, b=0))
    for number in range(1, KEPT + 5):
        view = succeed(view, records(a=number, b=0))
    assert len(view.changes) == KEPT and view.differs(first) == {("kind", "a")}


def test_views_are_made_once_in_a_generation_while_somebody_holds_them() -> None:
    views, made = Views(), 0

    def make() -> Records:
        nonlocal made
        made += 1
        return records(a=made // 3)

    first = views.get("key", 1, make)
    assert views.get("key", 1, make) is first and made == 1
    assert views.get("key", 2, make) is first and made == 2, "looked at, and found the same"
    assert views.get("key", 3, make) is not first and made == 3
    del first
    views.get("other", 3, make)
    assert len(views._known) == 0, "nobody holds one"


def test_what_is_new() -> None:
    first = succeed(None, records(a=1, b=2))
    before = NetworkShare(first, records(own=1), 0)
    assert news(None, before) == (records(a=1, b=2, own=1), [])
    assert news(before, before) == ({}, [])
    after = NetworkShare(succeed(first, records(a=5, c=1)), records(a=7), 0)
    assert news(before, after) == (records(a=7, c=1), [("kind", "b"), ("kind", "own")])
    assert news(after, NOTHING) == ({}, [("kind", "a"), ("kind", "c")])


def test_however_it_goes_a_node_knows_what_it_is_told() -> None:
    chance = random.Random(7)
    views: dict[int, View] = {}
    told: list[NetworkShare | None] = [None] * 4
    known: list[dict[Name, Struct]] = [{} for _ in told]
    for _ in range(400):
        key = chance.randrange(2)
        fresh = records(**{letter: chance.randrange(3) for letter in "abcdef" if chance.random() < 0.7})
        views[key] = succeed(views.get(key), fresh)
        node = chance.randrange(len(told))
        own = records(**{letter: chance.randrange(3) for letter in "efgh" if chance.random() < 0.3})
        share = NetworkShare(views[chance.choice(list(views))], own, 0)
        new, gone = news(told[node], share)
        assert not set(gone) & set(new) and all(name in known[node] for name in gone)
        assert all(known[node].get(name) != record for name, record in new.items()), "nothing is told twice"
        for name in gone:
            del known[node][name]
        known[node] |= new
        told[node] = share
        assert known[node] == share.records
