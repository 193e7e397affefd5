import pytest

from husk.client.image import Image
from husk.client.networks import Network
from husk.client.thing import Thing, id_of


def test_the_same_thing_twice(calls):
    assert Network(calls, {"Id": "n1"}) == Network(calls, {"Id": "n1", "Name": "later"})
    assert Network(calls, {"Id": "n1"}) != Image(calls, {"Id": "n1"})
    assert len({Network(calls, {"Id": "n1"}), Network(calls, {"Id": "n1"})}) == 1


def test_ids_by_either_name(calls):
    assert Thing(calls, {"ID": "s" * 25}).short_id == "s" * 12
    assert Thing(calls, {"Id": "sha256:" + "a" * 64}).short_id == "a" * 12
    assert repr(Thing(calls, {"ID": "t1"})) == "<Thing t1>"


def test_a_thing_or_its_name(calls):
    assert (id_of("name"), id_of(Thing(calls, {"Id": "i1"}))) == ("name", "i1")


async def test_each_kind_says_where_it_is(calls):
    with pytest.raises(NotImplementedError):
        await Thing(calls, {"Id": "i1"}).reload()
