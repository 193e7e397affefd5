import pytest

from husk.client.image import Image
from husk.client.networks import Network
from husk.client.thing import Listing, Thing, id_of
from husk.client.volumes import Volume


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


def test_things_in_a_notebook(calls):
    """Of both a thing and a list of them; names are words."""
    shown = Listing([Volume(calls, {"Name": "<b>"}), Volume(calls, {"Name": "data"})])._repr_html_()
    assert shown.count("<tr>") == 3 and "&lt;b&gt;" in shown and "<b>" not in shown
    assert Volume(calls, {"Name": "data"})._repr_html_().count("<tr>") == 2
    empty: Listing[Volume] = Listing()
    assert empty._repr_html_() == "<p>none</p>"
    image = Image(calls, {"Id": "sha256:1234", "RepoTags": ["a:1"], "Size": 2_500_000})
    assert "2.5 MB" in image._repr_html_() and "a:1" in image._repr_html_()
