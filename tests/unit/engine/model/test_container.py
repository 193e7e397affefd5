"""A container's record tells the images that it needs."""

from collections.abc import Iterator

import msgspec
import pytest
from msgspec import inspect

from husk.engine.images.held import HeldLayer
from husk.engine.images.index import ImageIndex
from husk.engine.model.container import Container, MountPoint, State, changes
from husk.engine.model.image import Image
from husk.engine.model.network import Network
from husk.engine.model.volume import Volume
from husk.storage.layers.store import Layer
from tests.support.but import but
from tests.unit.engine.records import container


@pytest.mark.parametrize(
    ("images", "used"),
    [({"sha256:own"}, True), ({"sha256:mounted", "sha256:x"}, True), ({"sha256:other"}, False), (set(), False)],
)
def test_a_container_uses_its_image_and_those_that_it_mounts(images: set[str], used: bool) -> None:
    record = container("box", image="sha256:own")
    points = [
        MountPoint(type="volume", name="v", destination="/v"),
        MountPoint(type="image", name="i", destination="/i", image_id="sha256:mounted", layers=["sha256:layer"]),
    ]
    record = but(record, mounts=points)
    assert record.uses(images) is used


RECORDS = (Container, Image, ImageIndex, Network, Volume, Layer, HeldLayer)


def parts(kind: object) -> Iterator[type[msgspec.Struct]]:
    """All structs that a type is made of."""
    if isinstance(kind, inspect.StructType):
        yield kind.cls
        for field in kind.fields:
            yield from parts(field.type)
    for name in ("types", "item_types"):
        for inner in getattr(kind, name, ()):
            yield from parts(inner)
    for name in ("item_type", "value_type"):
        if (inner := getattr(kind, name, None)) is not None:
            yield from parts(inner)


KINDS = sorted(
    {part for record in RECORDS for part in parts(inspect.type_info(record))}, key=lambda kind: kind.__name__
)


def test_a_record_has_many_parts() -> None:
    assert {kind.__name__ for kind in KINDS} >= {"Container", "State", "Health", "Endpoint", "HostConfig", "Mount"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_part_of_a_record_can_be_changed_in_its_place(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen
    part = kind(**dict.fromkeys(kind.__struct_fields__))
    with pytest.raises(AttributeError):
        setattr(part, kind.__struct_fields__[0], None)


def test_a_field_that_is_none_is_refused() -> None:
    with pytest.raises(AttributeError):
        State().statsu = "running"  # type: ignore[attr-defined]


def test_reading_and_making_records_changes_nothing() -> None:
    before = changes.count
    record = msgspec.json.decode(msgspec.json.encode(container("a")), type=Container)
    assert record.state.status == "created"
    assert changes.count == before


def test_each_change_is_counted() -> None:
    before = changes.count
    changes.note()
    assert changes.count == before + 1
