"""Knowledge of a registry: the platforms of a name, and a search with its filters."""

from typing import cast

import pytest

from husk.engine.images.transfers import distribution, search
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter
from husk.registry.client import FetchedManifest, RegistryClient
from husk.registry.manifest import Descriptor, Platform
from husk.registry.reference import Reference
from husk.registry.search import SearchResult
from tests.support.registry import digest_of, make_image, make_index, tar_of

IMAGE = make_image([tar_of({"a": b"1"})], architecture="arm", variant="v7")


class FakeRegistry:
    def __init__(self, body: bytes = b"", media_type: str = "") -> None:
        self._body, self._media_type = body, media_type
        self.asked: list[tuple[str, int]] = []
        self.references: list[str] = []
        self.results: list[SearchResult] = []

    async def manifest(self, ref: Reference, auth: object = None) -> FetchedManifest:
        self.references.append(str(ref))
        descriptor = Descriptor(media_type=self._media_type, digest=digest_of(self._body), size=len(self._body))
        return FetchedManifest(body=self._body, descriptor=descriptor)

    async def blob_bytes(self, ref: Reference, descriptor: Descriptor, auth: object = None) -> bytes:
        return IMAGE.blobs[descriptor.digest]

    async def search(self, term: str, limit: int, auth: object = None) -> list[SearchResult]:
        self.asked.append((term, limit))
        return self.results

    @property
    def client(self) -> RegistryClient:
        return cast(RegistryClient, self)


async def test_an_image_tells_its_platform_in_its_configuration() -> None:
    # A registry that announces another type than the manifest has is believed less than the manifest.
    registry = FakeRegistry(IMAGE.manifest, "application/json")
    found = await distribution(registry.client, "team/app", None)
    assert found.platforms == [Platform("arm", "linux", "v7")]
    assert (found.descriptor.digest, found.descriptor.media_type) == (IMAGE.digest, IMAGE.media_type)
    assert registry.references == ["docker.io/team/app:latest"]


async def test_an_index_tells_all_of_them() -> None:
    registry = FakeRegistry(*make_index([IMAGE, make_image([b""], architecture="amd64")]))
    found = await distribution(registry.client, f"team/app@{IMAGE.digest}", None)
    assert [str(platform) for platform in found.platforms] == ["linux/arm/v7", "linux/amd64"]
    assert registry.references == [f"docker.io/team/app@{IMAGE.digest}"]


def result(name: str, stars: int, official: bool = False) -> SearchResult:
    return SearchResult(name=name, star_count=stars, is_official=official)


async def found(filters: dict[str, list[str]]) -> list[str]:
    registry = FakeRegistry()
    registry.results = [result("a", 1), result("b", 10), result("c", 10, official=True)]
    return [one.name for one in await search(registry.client, "x", 0, Filters(filters), None)]


async def test_a_search_is_filtered_here() -> None:
    assert await found({}) == ["a", "b", "c"]
    assert await found({"stars": ["2"]}) == ["b", "c"]
    assert await found({"stars": ["2", "50"]}) == []
    assert await found({"is-official": ["true"]}) == ["c"]
    assert await found({"is-official": ["false"], "stars": ["10"]}) == ["b"]
    assert await found({"is-automated": ["true"]}) == []


@pytest.mark.parametrize(("term", "limit"), [("", 25), ("x", -1), ("x", 101)])
async def test_what_cannot_be_searched_for_is_not_asked(term: str, limit: int) -> None:
    registry = FakeRegistry()
    with pytest.raises(InvalidParameter):
        await search(registry.client, term, limit, Filters({}), None)
    assert registry.asked == []


async def test_without_a_limit_there_are_twenty_five() -> None:
    registry = FakeRegistry()
    await search(registry.client, "x", 0, Filters({}), None)
    await search(registry.client, "x", 100, Filters({}), None)
    assert registry.asked == [("x", 25), ("x", 100)]
