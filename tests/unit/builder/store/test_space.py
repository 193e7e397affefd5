from husk.builder.store.space import doubled


def test_the_end_of_a_path_twice():
    assert doubled("/srv/app/data/l/7") == {
        b"l/7/l/7",
        b"data/l/7/data/l/7",
        b"app/data/l/7/app/data/l/7",
        b"srv/app/data/l/7/srv/app/data/l/7",
    }


def test_one_name_twice_tells_nothing():
    assert b"7/7" not in doubled("/data/l/7")
    assert doubled("/7") == frozenset()
