"""A container's record tells the images that it needs."""

import pytest

from husk.engine.model.container import MountPoint
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
