"""Questions of the edge to images: which one a name means on a platform, what it takes, and what it may be called."""

from typing import cast

import pytest

from husk.engine.images.limiter import Limiter
from husk.engine.images.listing import NamePatterns
from husk.engine.images.service import Images
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter, NotFound
from husk.registry.client import RegistryClient
from husk.registry.manifest import Platform, detected_platform, host_platform
from tests.support.but import but
from tests.support.registry import make_image, tar_of
from tests.support.shelf import Shelf
from tests.unit.engine.records import container

HERE = host_platform()
BASE, TOP = tar_of({"base": b"1"}), tar_of({"top": b"22" * 600})
OWN = make_image([BASE], architecture=HERE.architecture, variant=HERE.variant)
FOREIGN = make_image([BASE, TOP], architecture="s390x")
S390X = Platform("s390x", "linux")


@pytest.fixture
def images(shelf: Shelf) -> Images:
    return Images(shelf.store, lambda: cast(RegistryClient, None), shelf.state, Limiter(1), Limiter(1))


async def test_a_platform_chooses_among_what_a_name_stands_for(shelf: Shelf, images: Images) -> None:
    index = await shelf.add_index([OWN, FOREIGN], "app:1")
    assert images.select("app:1", None).image.id == OWN.config_digest
    assert images.find_for_container("app:1", "").id == OWN.config_digest
    assert images.find_for_container("app:1", "linux/s390x").id == FOREIGN.config_digest
    assert images.select("app:1", S390X).image_index == index
    with pytest.raises(NotFound, match=r"app:1 was found but does not provide the specified platform \(linux/ppc64le"):
        images.select("app:1", Platform("ppc64le", "linux"))
    with pytest.raises(InvalidParameter):
        images.find_for_container("app:1", "a/b/c/d/e")


async def test_who_gets_a_foreign_image_unasked_is_warned(shelf: Shelf, images: Images) -> None:
    assert images.warning_about(await shelf.add(OWN, "own:1")) == ""
    warning = images.warning_about(await shelf.add(FOREIGN, "foreign:1"))
    assert f"platform (linux/s390x) does not match the detected host platform ({detected_platform()})" in warning


async def test_layers_that_images_share_count_once(shelf: Shelf, images: Images) -> None:
    own, foreign = await shelf.add(OWN, "own:1"), await shelf.add(FOREIGN, "foreign:1")
    assert images.layers_size() == len(BASE) + len(TOP)
    assert (images.size(own), images.size(foreign)) == (len(BASE), len(BASE) + len(TOP))
    assert images.shared_size(own) == images.shared_size(foreign) == len(BASE)
    shelf.containers = [container(image=own.id, layers=own.chain_ids)]
    assert images.reclaimable() == len(TOP)
    assert images.containers_of(own) == 1


async def test_an_index_counts_as_one_image(shelf: Shelf, images: Images) -> None:
    index = await shelf.add_index([OWN, FOREIGN], "app:1")
    shown = images.find("app:1")
    assert images.size(shown) == len(BASE) + len(TOP) and images.shared_size(shown) == 0
    shelf.containers = [container(image=FOREIGN.config_digest)]
    assert images.containers_of(shown) == 1
    assert images.meant_by("app:1") == {OWN.config_digest, FOREIGN.config_digest}
    assert images.target(shown).digest == index.digest and len(images.manifests(shown)) == 2
    assert len(images) == 2 and images.listing(False, Filters({})) == [shown]


async def test_names_are_shown_as_patterns_ask(shelf: Shelf, images: Images) -> None:
    image = await shelf.add(OWN, "app:1", "team/app:2", f"app@{OWN.digest}")
    assert images.tags(image) == ["app:1", "team/app:2"]
    assert images.tags(image, NamePatterns(["team/*"])) == ["team/app:2"]
    assert images.digests(image) == [f"app@{OWN.digest}"]
    assert images.digests(image, NamePatterns(["team/*"])) == []


async def test_descendants_of_what_is_not_there_are_none(shelf: Shelf, images: Images) -> None:
    below, above = await shelf.add(OWN, "below:1"), await shelf.add(FOREIGN, "above:1")
    await shelf.catalog.add(but(above, parent=below.id))
    assert images.descendants("below:1") == {below.id, above.id}
    assert images.descendants("nothing:1") == images.descendants("BAD") == set()


async def test_where_layers_lie_unless_one_is_gone(shelf: Shelf, images: Images) -> None:
    image = await shelf.add(FOREIGN, "app:1")
    assert images.directories(image.chain_ids) == [f"/layers/{chain}" for chain in reversed(image.chain_ids)]
    await shelf.layers.remove(image.chain_ids[0])
    assert images.directories(image.chain_ids) == []
    assert images.size_of_layers(image.chain_ids) == len(TOP)


async def test_history_is_that_of_the_platform(shelf: Shelf, images: Images) -> None:
    await shelf.add_index([OWN, FOREIGN], "app:1")
    assert [len(images.history("app:1", platform)) for platform in (None, S390X)] == [1, 2]


async def test_a_tag_names_the_index_where_there_is_one(shelf: Shelf, images: Images) -> None:
    index = await shelf.add_index([OWN, FOREIGN], "app:1")
    before = images.revision
    await images.tag("app:1", "team/app", "2")
    await images.tag("app:1", "other", "")
    assert images.select("team/app:2", None).image_index == images.select("other:latest", None).image_index == index
    assert [event.attributes["name"] for event in shelf.happened] == ["team/app:2", "other:latest"]
    assert images.revision > before and images.find("app:1").last_tagged


@pytest.mark.parametrize("repo", ["", "BAD", "sha256", f"app@{OWN.digest}"])
async def test_what_is_no_name_is_refused(shelf: Shelf, images: Images, repo: str) -> None:
    image = await shelf.add(OWN, "app:1")
    with pytest.raises(InvalidParameter):
        await images.tag("app:1", repo, "1")
    assert images.tags(image) == ["app:1"] and shelf.happened == []


async def test_a_pull_of_what_is_no_platform_asks_no_registry(images: Images) -> None:
    for image, platform in (("BAD", ""), ("app", "a/b/c/d/e")):
        with pytest.raises(InvalidParameter):
            await images.pull(image, "", platform, None, lambda progress: None)
