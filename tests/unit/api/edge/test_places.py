"""Paths are remembered, but never many or long ones."""

from husk.api.edge.places import KnownPlaces


def test_a_path_leads_where_it_led_before_with_the_same_method() -> None:
    places: KnownPlaces[str] = KnownPlaces()
    places.keep(b"GET", b"/info", "info")
    assert places.get(b"GET", b"/info") == "info"
    assert places.get(b"HEAD", b"/info") is None and places.get(b"GET", b"/version") is None


def test_paths_are_never_many_or_long() -> None:
    places: KnownPlaces[int] = KnownPlaces()
    paths = [b"/containers/c%d/json" % number for number in range(3000)]
    for number, path in enumerate(paths):
        places.keep(b"GET", path, number)
        assert places.get(b"GET", path) == number
    assert sum(places.get(b"GET", path) is not None for path in paths) <= 2048
    long = b"/containers/" + b"c" * 1000 + b"/json"
    places.keep(b"GET", long, 1)
    assert places.get(b"GET", long) is None
