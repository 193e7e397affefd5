"""A client's word about a volume becomes its record, or is refused in dockerd's words."""

import pytest

from husk.engine.model.volume import ANONYMOUS_LABEL
from husk.engine.volumes.spec import VolumeSpec, draft
from husk.errors import InvalidParameter, NotFound


def test_a_named_volume_keeps_what_it_is_given() -> None:
    made = draft(VolumeSpec("data", "local", {"type": "tmpfs", "device": "tmpfs"}, {"a": "b"}))
    assert (made.name, made.labels, made.options) == ("data", {"a": "b"}, {"type": "tmpfs", "device": "tmpfs"})
    assert not made.anonymous


def test_one_without_a_name_gets_a_name_and_a_label_that_says_so() -> None:
    made = draft(VolumeSpec(labels={"a": "b"}))
    assert len(made.name) == 64 and made.anonymous
    assert made.labels == {"a": "b", ANONYMOUS_LABEL: ""}


def test_what_cannot_be_is_told_with_the_name() -> None:
    with pytest.raises(NotFound, match='create data: error looking up volume plugin nfs: plugin "nfs" not found'):
        draft(VolumeSpec("data", "nfs"))
    with pytest.raises(InvalidParameter, match='create data: invalid option: "speed"'):
        draft(VolumeSpec("data", options={"speed": "1"}))
    with pytest.raises(InvalidParameter, match="create a/b: "):
        draft(VolumeSpec("a/b"))
