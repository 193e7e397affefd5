"""The history of an image that was built: a step for each layer, a time for each step."""

from husk.builder.exporters.layers import COMMENT, complete_history
from husk.engine.model.image import HistoryEntry

BASE, NEW, NEWER = "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def step(by="", created="", empty=False):
    return HistoryEntry(created_by=by, created=created, empty_layer=empty)


def layer(created="", by=""):
    return HistoryEntry(created_by=by, created=created, comment=COMMENT)


def times(steps):
    return [each.created for each in steps]


def test_steps_get_the_times_of_their_layers():
    history = [step("ADD", BASE), step("RUN a"), step("RUN b")]
    assert times(complete_history(history, [layer(), layer(NEW), layer(NEWER)])) == [BASE, NEW, NEWER]


def test_a_step_without_a_layer_has_the_time_of_the_one_before_it_or_of_the_first_new_one():
    history = [step("ADD", BASE), step("ENV", empty=True), step("RUN a"), step("CMD", empty=True)]
    assert times(complete_history(history, [layer(), layer(NEW)])) == [BASE, NEW, NEW, NEW]


def test_an_image_with_nothing_new_has_the_time_of_its_base():
    history = [step("ADD", BASE), step("CMD", empty=True)]
    assert times(complete_history(history, [layer()])) == [BASE, BASE]


def test_layers_that_no_step_tells_of_get_one():
    steps = complete_history([step("RUN a")], [layer(NEW), layer(NEWER, "merge")])
    assert [(each.created_by, each.comment) for each in steps] == [("RUN a", ""), ("merge", COMMENT)]


def test_steps_beyond_the_last_layer_are_empty():
    steps = complete_history([step("RUN a"), step("RUN b")], [layer(NEW)])
    assert [each.empty_layer for each in steps] == [False, True]


def test_what_is_given_stays_as_it_is():
    history = [step("RUN a")]
    complete_history(history, [layer(NEW)])
    assert times(history) == [""]


def test_nothing_at_all():
    assert complete_history([], []) == []
