import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.cli.kit.fitting import fitted

PS = ("CONTAINER ID", "IMAGE", "COMMAND", "CREATED", "STATUS", "PORTS", "NAMES")
WIDTHS = (12, 14, 24, 14, 22, 60, 20)
TITLES = (*PS, "LABELS", "SIZE", "NAME", "ID", "ERROR", "DESCRIPTION", "REPOSITORY")


def shown(room: int) -> dict[str, int]:
    return {PS[place]: width for place, width in fitted(PS, WIDTHS, room, 2)}


def test_with_room_all_is_whole():
    assert list(shown(200).values()) == list(WIDTHS)


def test_what_has_a_begin_is_cut_first():
    found = shown(140)
    assert list(found) == list(PS) and found["PORTS"] < 60 and found["COMMAND"] == 12 and found["NAMES"] == 20


def test_at_80_columns_what_matters_is_there():
    found = shown(80)
    assert list(found) == ["CONTAINER ID", "IMAGE", "STATUS", "NAMES"] and found["NAMES"] == 20
    assert sum(found.values()) + 2 * (len(found) - 1) <= 80


@given(
    st.lists(st.tuples(st.sampled_from(TITLES), st.integers(1, 200)), min_size=1, max_size=9, unique_by=lambda e: e[0]),
    st.integers(10, 250),
)
def test_names_and_ids_are_whole_whatever_the_width(columns: list[tuple[str, int]], room: int):
    titles, widths = [title for title, _ in columns], [width for _, width in columns]
    found = {titles[place]: width for place, width in fitted(titles, widths, room, 2)}
    for title, width in columns:
        if title in ("NAMES", "NAME", "ID", "CONTAINER ID"):
            assert found[title] == width
    assert all(0 < found[titles[place]] <= widths[place] for place in range(len(titles)) if titles[place] in found)


@pytest.mark.parametrize("room", [1, 0])
def test_no_room_at_all(room):
    assert [place for place, _ in fitted(("CREATED",), (10,), room, 2)] == [0]
