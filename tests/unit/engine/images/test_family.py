"""An image for several platforms: its record, its face, and who is chosen for a platform."""

import pytest

from husk.engine.images.family import (
    Candidate,
    Family,
    Member,
    choose_image,
    face_of,
    family_of,
    merged,
    platform_of,
    suits,
    without,
)
from husk.engine.images.index import ImageIndex
from husk.engine.model.image import Image
from husk.registry.manifest import OCI_INDEX, OCI_MANIFEST, Descriptor, Index, Platform, host_platform, parse_platform
from husk.registry.reference import parse
from tests.unit.engine.records import digest, image


def on(platform: str) -> Image:
    """An image for a platform."""
    record, parsed = image(platform), parse_platform(platform)
    record.os, record.architecture, record.variant = parsed.os, parsed.architecture, parsed.variant
    return record


HERE, ARM64, ARM6 = on(str(host_platform())), on("linux/arm64"), on("linux/arm/v6")
FOREIGN = on("linux/s390x")


def family(*images: Image, name: str = "index") -> Family:
    members = [Member(digest=one.manifest, size=1, image=one.id) for one in images]
    return Family(digest=digest(name), size=1, media_type=OCI_INDEX, members=members)


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
    made = family_of(Descriptor(digest=digest("index"), size=7), Index(entries))
    assert [(m.kind, m.about, m.here) for m in made.members] == [
        ("image", "", False), ("attestation", manifest, False), ("unknown", "", False),
    ]  # fmt: skip
    assert (made.content, made.complete) == ([digest("index")], False)


def test_what_was_known_stays_known() -> None:
    first, second = family(HERE, ARM64), family(HERE, ARM64)
    first.members[1].image = second.members[0].image = ""
    assert merged(first, second).images == [HERE.id, ARM64.id]
    assert without(merged(first, second), [HERE.id]).images == [ARM64.id]


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


def test_the_face_is_what_runs_here() -> None:
    assert face_of(offered(FOREIGN, HERE)) is HERE
    assert face_of(offered(FOREIGN)) is FOREIGN
    assert face_of([]) is None


def test_an_image_is_chosen_for_a_platform() -> None:
    assert choose_image(offered(FOREIGN, ARM6), Platform("arm", "linux", "v7")) is ARM6
    assert choose_image(offered(FOREIGN, ARM6), Platform("arm64", "linux")) is None
    unsaid = on("linux/arm")  # as old configurations are, whose index says v5
    assert choose_image([(Platform("arm", "linux", "v5"), unsaid)], Platform("arm", "linux", "v5")) is unsaid


async def test_names_of_a_family_are_those_of_its_face(index: ImageIndex) -> None:
    both = family(FOREIGN, HERE)
    await index.add_all([FOREIGN, HERE], [parse("box:1")], both)
    assert index.find("box:1") is HERE
    assert [name.familiar for name in index.names(HERE)] == ["box:1"]
    assert (index.names(FOREIGN), [n.familiar for n in index.known_as(FOREIGN)]) == ([], ["box:1"])
    assert index.shown() == [HERE]
    assert index.look_up(HERE.id).family == both
    assert index.look_up(FOREIGN.id).family is None
    await index.add(FOREIGN, parse("own:1"))
    assert index.shown() == [FOREIGN, HERE]


async def test_a_family_outlives_the_daemon_and_all_but_its_last_image(index: ImageIndex) -> None:
    await index.add_all([FOREIGN, HERE], [parse("box:1")], family(FOREIGN, HERE))
    again = ImageIndex(index._state)
    await again.delete(HERE)
    assert again.find("box:1").id == FOREIGN.id
    assert HERE.manifest not in again.content()
    await again.delete(FOREIGN)
    assert (again.families(), again.content(), again.target(parse("box:1"))) == ([], set(), "")


async def test_a_dissolved_family_leaves_single_images(index: ImageIndex) -> None:
    both = family(FOREIGN, HERE)
    await index.add_all([FOREIGN, HERE], [parse("box:1")], both)
    await index.dissolve(both)
    again = ImageIndex(index._state)
    assert (again.find("box:1").id, len(again), again.families()) == (HERE.id, 2, [])


async def test_two_pulls_of_one_index_add_up(index: ImageIndex) -> None:
    for present in (HERE, FOREIGN):
        news = family(FOREIGN, HERE)
        for member in news.members:
            member.image = present.id if member.image == present.id else ""
        await index.add(present, parse("box:1"), family=news)
    (known,) = index.families()
    assert known.images == [FOREIGN.id, HERE.id]
