import pytest

from husk.client.image import Image


@pytest.fixture
def image(calls):
    return Image(calls, {"Id": "sha256:1", "RepoTags": ["a:1"], "RepoDigests": ["a@sha256:2"], "Size": 3})


def test_an_image_without_a_name(calls):
    image = Image(calls, {"Id": "sha256:" + "a" * 64, "RepoTags": ["<none>:<none>"], "RepoDigests": ["<none>@<none>"]})
    assert (image.tags, image.digests, image.short_id, image.labels) == ([], [], "a" * 12, {})


def test_what_is_known(image):
    assert (image.tags, image.digests, image.size, repr(image)) == (["a:1"], ["a@sha256:2"], 3, "<Image 1 a:1>")


async def test_one_more_name(image, engine):
    engine.answers("POST", "/images/sha256:1/tag", None)
    engine.answers("GET", "/images/sha256:1/json", {"Id": "sha256:1", "RepoTags": ["a:1", "b:2"]})
    await image.tag("b:2")
    assert image.tags == ["a:1", "b:2"]
    assert engine.last("POST", "/images/sha256:1/tag").query == {"repo": "b", "tag": "2"}
    await image.tag("host:5000/b", "3")
    assert engine.last("POST", "/images/sha256:1/tag").query == {"repo": "host:5000/b", "tag": "3"}


async def test_how_it_was_made(image, engine):
    engine.answers("GET", "/images/sha256:1/history", [{"CreatedBy": "x"}])
    engine.answers("GET", "/images/sha256:1/attestations", [{"PredicateType": "p"}])
    assert await image.history() == [{"CreatedBy": "x"}]
    assert await image.attestations(types=["p"], statement=True) == [{"PredicateType": "p"}]
    assert engine.last("GET", "/images/sha256:1/attestations").query == {"type": "p", "statement": "1"}


async def test_it_is_saved_with_its_name(image, engine):
    engine.answers("GET", "/images/a:1/get", b"archive")
    assert b"".join([piece async for piece in image.save()]) == b"archive"


async def test_it_is_removed(image, engine):
    engine.answers("DELETE", "/images/sha256:1", [{"Untagged": "a:1"}, {"Deleted": "sha256:1"}])
    assert await image.remove(force=True) == [{"Untagged": "a:1"}, {"Deleted": "sha256:1"}]


async def test_asking_again(image, engine):
    engine.answers("GET", "/images/sha256:1/json", {"Id": "sha256:1", "Config": {"Labels": {"a": "b"}}})
    await image.reload()
    assert image.labels == {"a": "b"}
