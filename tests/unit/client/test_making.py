"""Making of containers: a specification, whole or in keywords, and the image that is missing."""

import pytest

from husk.client.spec import ContainerSpec
from husk.errors import NotFound, SystemFault
from tests.support.fake_engine import failed


@pytest.fixture
def created(engine):
    engine.answers("POST", "/containers/create", {"Id": "c1", "Warnings": ["mind it"]})
    engine.answers("GET", "/containers/c1/json", {"Id": "c1", "Name": "/odd_name", "State": {"Status": "created"}})
    return lambda: engine.last("POST", "/containers/create").document


async def test_keywords_change_a_whole_specification(client, created):
    await client.containers.create(ContainerSpec(image="busybox", command=["a"], user="me"), ["b"], hostname="h")
    assert (created()["Cmd"], created()["User"], created()["Hostname"]) == (["b"], "me", "h")


async def test_what_was_made_is_known_at_once_and_after_its_start(client, engine, created):
    box = await client.containers.create("busybox")
    assert (box.name, box.status, box.attrs["Warnings"]) == ("odd_name", "created", ["mind it"])
    engine.answers("POST", "/containers/c1/start", None)
    engine.answers("GET", "/containers/c1/json", {"Id": "c1", "Name": "/odd_name", "State": {"Status": "running"}})
    await box.start()
    assert (box.name, box.status, box.attrs["Warnings"]) == ("odd_name", "running", ["mind it"])


async def test_what_cannot_be_looked_at_does_not_stay(client, engine, created):
    engine.answers("GET", "/containers/c1/json", failed(500, "no"))
    engine.answers("DELETE", "/containers/c1", None)
    with pytest.raises(SystemFault):
        await client.containers.create("busybox")
    assert engine.last("DELETE", "/containers/c1").query["force"] == "1"


async def test_a_missing_image_is_not_pulled_where_it_is_not_to_be(client, engine):
    engine.answers("POST", "/containers/create", failed(404, "No such image: none:latest"))
    with pytest.raises(NotFound, match="No such image"):
        await client.containers.create("none", pull="never")
    assert not [asked for asked in engine.asked if asked.path == "/images/create"]
