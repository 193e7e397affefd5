"""Stacks as text."""

import pytest

from husk.builder.graph import stacks

IMAGE = stacks.of_layers(["sha256:a", "sha256:b"])


def test_layers_and_diffs_are_told_apart():
    stack = stacks.joined(IMAGE, "diff:1", "diff:2")
    assert stacks.layers_in(stack) == ["sha256:a", "sha256:b"]
    assert stacks.diffs_in(stack) == ["diff:1", "diff:2"]


def test_nothing_adds_nothing():
    assert stacks.joined("", "diff:1", "") == "diff:1"
    assert stacks.elements("") == []


@pytest.mark.parametrize(
    ("lower", "upper", "above"),
    [
        ("", "diff:1", "diff:1"),
        (IMAGE, f"{IMAGE} diff:1 diff:2", "diff:1 diff:2"),
        (IMAGE, IMAGE, ""),
        ("diff:2", "diff:1 diff:2", None),
        ("diff:1 diff:2", "diff:1", None),
        ("diff:1", "diff:12", None),
    ],
)
def test_what_lies_on_top(lower, upper, above):
    assert stacks.above(lower, upper) == above
