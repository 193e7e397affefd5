"""Filters of volumes."""

import pytest

from husk.engine.model.filters import Filters
from husk.engine.model.volume import ANONYMOUS_LABEL, Volume
from husk.engine.volumes.listing import prunable, select

VOLUMES = [
    Volume(name="alpha", created="", labels={"a": "1"}),
    Volume(name="beta", created="", labels={"a": "2", "b": ""}),
    Volume(name="c0ffee", created="", labels={ANONYMOUS_LABEL: ""}),
    Volume(name="used", created=""),
]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["alpha", "beta", "c0ffee", "used"]),
        ({"name": ["a"]}, ["alpha", "beta"]),
        ({"name": ["alp", "use"]}, ["alpha", "used"]),
        ({"driver": ["local"]}, ["alpha", "beta", "c0ffee", "used"]),
        ({"driver": ["other"]}, []),
        ({"label": ["a"]}, ["alpha", "beta"]),
        ({"label": ["a=2", "b"]}, ["beta"]),
        ({"label!": ["a"]}, ["c0ffee", "used"]),
        ({"dangling": ["true"]}, ["alpha", "beta", "c0ffee"]),
        ({"dangling": ["false"], "name": ["e"]}, ["used"]),
    ],
)
def test_select(filters: dict[str, list[str]], names: list[str]) -> None:
    assert [volume.name for volume in select(VOLUMES, {"used"}, Filters(filters))] == names


@pytest.mark.parametrize(
    ("filters", "everything", "names"),
    [
        ({}, False, ["c0ffee"]),
        ({}, True, ["alpha", "beta", "c0ffee"]),
        ({"all": ["1"]}, False, ["alpha", "beta", "c0ffee"]),
        ({"all": ["false"]}, True, ["c0ffee"]),
        ({"all": ["true"], "label": ["a"]}, False, ["alpha", "beta"]),
        ({"all": ["true"], "label!": ["a=1"]}, False, ["beta", "c0ffee"]),
    ],
)
def test_prunable(filters: dict[str, list[str]], everything: bool, names: list[str]) -> None:
    assert [volume.name for volume in prunable(VOLUMES, {"used"}, Filters(filters), everything)] == names


def test_what_lies_elsewhere_is_not_pruned() -> None:
    volumes = [
        Volume(name="here", created=""),
        Volume(name="there", created="", options={"type": "nfs", "device": ":/data"}),
        Volume(name="unnamed", created="", labels={ANONYMOUS_LABEL: ""}, options={"type": "tmpfs", "device": "tmpfs"}),
    ]
    assert [volume.name for volume in prunable(volumes, (), Filters({}), True)] == ["here"]
