"""Filters: both wire forms mean the same, and what is not a filter is refused in Docker's words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter

KEYS = ("label", "label!", "status", "dangling", "until", "exited", "all")


def parse(value: object) -> Filters:
    return Filters.parse(json.dumps(value), KEYS)


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_nothing_sent_is_no_filter(text: str | None) -> None:
    filters = Filters.parse(text, KEYS)
    assert not filters
    assert filters.get("status") == []
    assert "status" not in filters
    assert filters.matches_labels({})


@given(st.dictionaries(st.sampled_from(KEYS), st.lists(st.text(), unique=True)))
def test_a_map_of_lists_and_a_map_of_truths_mean_the_same(fields: dict[str, list[str]]) -> None:
    modern = parse({key: dict.fromkeys(values, True) for key, values in fields.items()})
    assert parse(fields) == modern
    assert all(modern.get(key) == values for key, values in fields.items())


def test_a_value_counts_once_and_keeps_its_place() -> None:
    assert parse({"status": ["b", "a", "b"]}).get("status") == ["b", "a"]


def test_a_value_counts_whatever_its_truth_says() -> None:
    assert parse({"status": {"running": False}}).get("status") == ["running"]


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse({"colour": ["red"]})
    assert caught.value.message == "invalid filter 'colour'"


@pytest.mark.parametrize("text", ["null", "{}", '{"label": null}', '{"label": []}'])
def test_null_is_no_filter(text: str) -> None:
    assert Filters.parse(text, ("label",)).get("label") == []


@pytest.mark.parametrize("text", ["x", "[]", '{"label": "a"}', '{"label": [1]}', '"a"', "\ud800"])
def test_what_is_not_a_filter_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match=r"^invalid filter$"):
        Filters.parse(text, KEYS)


@pytest.mark.parametrize(("values", "truth"), [(["1"], True), (["true"], True), (["0"], False), (["false"], False)])
def test_a_truth_is_read(values: list[str], truth: bool) -> None:
    assert parse({"dangling": values}).boolean("dangling", not truth) is truth


def test_a_truth_that_was_not_sent_takes_the_default() -> None:
    assert parse({}).boolean("dangling", True) is True


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "invalid filter 'dangling'"),
        (["yes"], "invalid filter 'dangling=[yes]'"),
        (["true", "false"], "invalid filter 'dangling=[true false]'"),
    ],
)
def test_an_unclear_truth_is_refused(values: list[str], message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse({"dangling": values}).boolean("dangling", False)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        (["a"], True),
        (["a=1"], True),
        (["a=2"], False),
        (["a="], False),
        (["empty="], True),
        (["a", "b=x=y"], True),
        (["a", "c"], False),
    ],
)
def test_all_labels_must_hold(wanted: list[str], matches: bool) -> None:
    assert parse({"label": wanted}).matches_labels({"a": "1", "b": "x=y", "empty": ""}) is matches


@pytest.mark.parametrize(
    ("refused", "matches"), [(["a"], False), (["a=2"], True), (["c"], True), (["c", "a=1"], False)]
)
def test_no_refused_label_may_hold(refused: list[str], matches: bool) -> None:
    assert parse({"label!": refused}).matches_labels({"a": "1"}) is matches


def test_a_refusal_of_no_label_in_particular_refuses_all() -> None:
    assert not parse({"label!": []}).matches_labels({})


def test_where_any_key_is_accepted_none_is_refused() -> None:
    assert Filters.parse('{"colour": ["red"]}', None).get("label") == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "invalid filter 'until'"),
        ([""], 'failed to parse value as time or duration: ""'),
        (["x"], 'failed to parse value as time or duration: "x"'),
        (["-1"], 'failed to parse value as time or duration: "-1"'),
        (["2024-13-40"], 'failed to parse value as time or duration: "2024-13-40"'),
        (["1h", "2h"], "more than one until filter specified"),
    ],
)
def test_an_until_that_names_no_one_moment_is_refused(values: list[str], message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse({"until": values}).until()
    assert caught.value.message == message


def test_until_names_a_moment() -> None:
    assert parse({}).until() is None
    assert parse({"until": ["12.5"]}).until() == 12_500_000_000
    assert parse({"until": ["12", "13"]}).moments("until") == [12 * 10**9, 13 * 10**9]


@pytest.mark.parametrize("value", ["", "x", "1_0", " 1", "1.5", "\u0661", str(2**63), "9" * 30])
def test_what_is_not_a_number_is_refused(value: str) -> None:
    with pytest.raises(InvalidParameter, match=r"^invalid filter 'exited="):
        parse({"exited": [value]}).numbers("exited")


def test_numbers_are_read() -> None:
    assert parse({"exited": ["0", "-1", "+137"]}).numbers("exited") == [0, -1, 137]


@pytest.mark.parametrize(("values", "truth"), [([], None), (["T"], True), (["True"], True), (["f"], False)])
def test_a_switch_takes_gos_spellings(values: list[str], truth: bool | None) -> None:
    for default in (True, False):
        assert parse({"all": values}).switch("all", default) is (default if truth is None else truth)


@pytest.mark.parametrize("values", [[""], ["yes"], ["true", "true "], ["1", "0"]])
def test_an_unclear_switch_is_refused(values: list[str]) -> None:
    with pytest.raises(InvalidParameter, match=r"^invalid filter 'all"):
        parse({"all": values}).switch("all", False)


def test_values_have_an_end() -> None:
    values = [str(number) for number in range(1001)]
    assert Filters.parse(json.dumps({"id": values[:1000], "name": values[:1000]}), ("id", "name"))
    with pytest.raises(InvalidParameter, match="more than 2000 values"):
        Filters.parse(json.dumps({"id": values, "name": dict.fromkeys(values, True)}), ("id", "name"))
