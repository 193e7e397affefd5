from husk.client.filters import filters_of


def test_filters_as_the_api_takes_them():
    assert filters_of({"dangling": True, "label": ["a", "b=c"], "name": "x"}) == {
        "dangling": ["true"],
        "label": ["a", "b=c"],
        "name": ["x"],
    }


def test_labels_may_be_a_mapping():
    assert filters_of({"label": {"a": "b"}}) == {"label": ["a=b"]}


def test_no_filters():
    assert filters_of(None) == {}
