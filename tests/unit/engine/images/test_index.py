"""An image for several platforms: its record, which image it shows, and who is chosen for a platform."""

import pytest

from husk.engine.images.catalog import ImageCatalog
from husk.engine.images.index import (
    Candidate,
    ImageIndex,
    IndexEntry,
    choose_image,
    default_image,
    index_record,
    merged,
    platform_of,
    suits,
    without,
)
from husk.engine.model.image import Image
from husk.registry.manifest import OCI_INDEX, OCI_MANIFEST, Descriptor, Index, Platform, host_platform, parse_platform
from husk.registry.reference import parse
from husk.storage.state.store import StateStore
from tests.support.but import but
from tests.unit.engine.records import digest, image


def on(platform: str) -> Image:
    """An image for a platform."""
    parsed = parse_platform(platform)
    return but(image(platform), os=parsed.os, architecture=parsed.architecture, variant=parsed.variant)


HERE, THERE, ARM6 = on(str(host_platform())), on("linux/riscv64"), on("linux/arm/v6")
FOREIGN = on("linux/s390x")


def index(*images: Image, name: str = "index") -> ImageIndex:
    members = [IndexEntry(digest=one.manifest, size=1, image=one.id) for one in images]
    return ImageIndex(digest=digest(name), size=1, media_type=OCI_INDEX, manifests=members)


def test_the_entries_of_an_index_have_kinds() -> None:
    manifest = digest("manifest")
    entries = [
        Descriptor(media_type=OCI_MANIFEST, digest=manifest, size=1, platform=Platform("amd64", "linux")),
        Descriptor(
            media_type=OCI_MANIFEST, digest=digest("attested"), size=1, platform=Platform("unknown", "unknown"),
            annotations={
                "vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": manifest,
            },
        ),
        Descriptor(media_type=OCI_INDEX, digest=digest("nested"), size=1),
    ]  # fmt: skip
    made = index_record(Descriptor(digest=digest("index"), size=7), Index(entries))
    assert [(m.kind, m.about, m.here) for m in made.manifests] == [
        ("image", "", False), ("attestation", manifest, False), ("unknown", "", False),
    ]  # fmt: skip
    assert (made.content, made.complete) == ([digest("index")], False)


def test_what_was_known_stays_known() -> None:
    here, there = index(HERE, THERE).manifests
    first = but(index(HERE, THERE), manifests=[here, but(there, image="")])
    second = but(first, manifests=[but(here, image=""), there])
    assert merged(first, second).images == [HERE.id, THERE.id]
    assert without(merged(first, second), [HERE.id]).images == [THERE.id]


def test_what_was_packed_for_an_image_goes_with_it() -> None:
    known = index(HERE, THERE)
    known = but(known, manifests=[but(entry, blobs=[f"packed for {entry.image}"]) for entry in known.manifests])
    assert [entry.blobs for entry in without(known, [HERE.id]).manifests] == [[], [f"packed for {THERE.id}"]]


@pytest.mark.parametrize(
    ("actual", "wanted", "answer"),
    [
        ("linux/arm/v6", "linux/arm/v7", True),
        ("linux/arm/v7", "linux/arm/v6", False),
        ("linux/arm64/v8", "linux/arm64", True),
        ("linux/amd64/v3", "linux/amd64", True),
        ("linux/arm", "linux/arm64", False),
        ("linux/386", "linux/amd64", False),
        ("windows/amd64", "linux/amd64", False),
    ],
)
def test_what_serves_a_platform(actual: str, wanted: str, answer: bool) -> None:
    assert suits(parse_platform(actual), parse_platform(wanted)) is answer


def offered(*images: Image) -> list[Candidate]:
    return [(platform_of(one), one) for one in images]


def test_what_runs_here_is_shown() -> None:
    assert default_image(offered(FOREIGN, HERE)) is HERE
    assert default_image(offered(FOREIGN)) is FOREIGN
    assert default_image([]) is None


def test_an_image_is_chosen_for_a_platform() -> None:
    assert choose_image(offered(FOREIGN, ARM6), Platform("arm", "linux", "v7")) is ARM6
    assert choose_image(offered(FOREIGN, ARM6), Platform("arm64", "linux")) is None
    unsaid = on("linux/arm")  # as old configurations are, whose index says v5
    assert choose_image([(Platform("arm", "linux", "v5"), unsaid)], Platform("arm", "linux", "v5")) is unsaid


async def test_names_of_an_index_are_those_of_the_image_that_stands_for_it(catalog: ImageCatalog) -> None:
    both = index(FOREIGN, HERE)
    await catalog.add_all([FOREIGN, HERE], [parse("box:1")], both)
    assert catalog.find("box:1") is HERE
    assert [name.familiar for name in catalog.names(HERE)] == ["box:1"]
    assert (catalog.names(FOREIGN), [n.familiar for n in catalog.known_as(FOREIGN)]) == ([], ["box:1"])
    assert catalog.shown() == [HERE]
    assert catalog.look_up(HERE.id).image_index == both
    assert catalog.look_up(FOREIGN.id).image_index is None
    await catalog.add(FOREIGN, parse("own:1"))
    assert catalog.shown() == [FOREIGN, HERE]


async def test_an_index_outlives_the_daemon_and_all_but_its_last_image(
    catalog: ImageCatalog, state: StateStore
) -> None:
    both = index(FOREIGN, HERE)
    await catalog.add_all([FOREIGN, HERE], [parse("box:1")], both)
    again = ImageCatalog(state)
    await again.delete(HERE)
    assert again.find("box:1").id == FOREIGN.id
    assert HERE.manifest not in again.content()
    await again.delete(FOREIGN)
    assert (again.index(both.digest), again.content(), again.target(parse("box:1"))) == (None, set(), "")


async def test_a_dissolved_index_leaves_single_images(catalog: ImageCatalog, state: StateStore) -> None:
    both = index(FOREIGN, HERE)
    await catalog.add_all([FOREIGN, HERE], [parse("box:1")], both)
    await catalog.dissolve(both)
    again = ImageCatalog(state)
    assert (again.find("box:1").id, len(again), again.index(both.digest)) == (HERE.id, 2, None)


async def test_two_pulls_of_one_index_add_up(catalog: ImageCatalog) -> None:
    for present in (HERE, FOREIGN):
        news = index(FOREIGN, HERE)
        members = [but(one, image=present.id if one.image == present.id else "") for one in news.manifests]
        await catalog.add(present, parse("box:1"), index=but(news, manifests=members))
    known = catalog.index_by_name(parse("box:1"))
    assert known is not None and known.images == [FOREIGN.id, HERE.id]
