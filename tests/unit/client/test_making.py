"""Making of containers: a specification, whole or in keywords, and the image that is missing."""

import pytest

from husk.client.spec import ContainerSpec
from husk.errors import NotFound
from tests.support.fake_engine import failed


@pytest.fixture
def created(engine):
    engine.answers("POST", "/containers/create", {"Id": "c1", "Warnings": []})
    return lambda: engine.last("POST", "/containers/create").document


async def test_keywords_change_a_whole_specification(client, created):
    await client.containers.create(ContainerSpec(image="busybox", command=["a"], user="me"), ["b"], hostname="h")
    assert (created()["Cmd"], created()["User"], created()["Hostname"]) == (["b"], "me", "h")


async def test_a_missing_image_is_not_pulled_where_it_is_not_to_be(client, engine):
    engine.answers("POST", "/containers/create", failed(404, "No such image: none:latest"))
    with pytest.raises(NotFound, match="No such image"):
        await client.containers.create("none", pull="never")
    assert not [asked for asked in engine.asked if asked.path == "/images/create"]
