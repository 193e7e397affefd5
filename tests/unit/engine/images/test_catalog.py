"""Images by id and by name."""

import contextlib
from collections.abc import Awaitable, Callable

import pytest
from msgspec import structs

from husk.engine.images.catalog import IMAGE, NAME, ImageCatalog
from husk.engine.images.index import ImageIndex, IndexEntry
from husk.errors import DiskFault, InvalidParameter, NotFound
from husk.registry.manifest import OCI_INDEX
from husk.registry.reference import parse
from husk.storage.state.store import Believe, Change, StateStore
from tests.support.but import but
from tests.support.full_store import FullStore
from tests.unit.engine.records import digest, image

DIGEST = digest("the manifest in the registry")


async def test_an_image_is_found_by_every_name_it_has(catalog: ImageCatalog) -> None:
    box = image("box")
    await catalog.add(box, parse("busybox:1"), parse("busybox"), parse(f"busybox@{DIGEST}"), parse("quay.io/a/b:c"))
    await catalog.add(image("other"), parse("other:latest"))
    await catalog.add(box, parse("busybox:latest"))
    for text in (
        box.id, box.id.removeprefix("sha256:"), box.id[:19], box.id[7:19], "busybox", "busybox:1",
        "docker.io/library/busybox:latest", "quay.io/a/b:c", f"busybox@{DIGEST}", f"busybox:1@{DIGEST}",
        f"busybox@{box.id}",
    ):  # fmt: skip
        assert catalog.find(text) is box, text


async def test_a_name_comes_before_the_beginning_of_an_id(catalog: ImageCatalog) -> None:
    first = image("first")
    prefix = first.id.removeprefix("sha256:")[:12]
    await catalog.add(first)
    named = image("named")
    await catalog.add(named, parse(prefix + ":latest"))
    assert catalog.find(prefix) is named


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nothing", "nothing:latest"),
        ("nothing:1", "nothing:1"),
        ("abcdef", "abcdef:latest"),
        ("0" * 64, "sha256:" + "0" * 64),
        ("sha256:" + "0" * 64, "sha256:" + "0" * 64),
        (f"busybox@{digest('x')}", f"busybox@{digest('x')}"),
    ],
)
def test_what_is_not_there_is_named(catalog: ImageCatalog, text: str, shown: str) -> None:
    with pytest.raises(NotFound) as caught:
        catalog.find(text)
    assert caught.value.message == f"No such image: {shown}"


@pytest.mark.parametrize("text", ["", "BusyBox", "a b", "a::b"])
def test_what_can_be_no_name_is_refused(catalog: ImageCatalog, text: str) -> None:
    with pytest.raises(InvalidParameter, match=r"^invalid reference format"):
        catalog.find(text)


async def test_another_image_s_digest_is_not_a_name(catalog: ImageCatalog) -> None:
    box = image("box")
    await catalog.add(box, parse("busybox:1"))
    with pytest.raises(NotFound):
        catalog.find(f"alpine@{box.id}")


async def test_an_ambiguous_beginning_is_refused(catalog: ImageCatalog) -> None:
    for number in range(17):
        await catalog.add(image(str(number)))
    ids = [one.id.removeprefix("sha256:")[0] for one in catalog]
    shared = next(first for first in ids if ids.count(first) > 1)
    with pytest.raises(InvalidParameter, match=f"^multiple IDs found with provided prefix: {shared}$"):
        catalog.find(shared)


async def test_a_name_moves_to_the_image_tagged_last(catalog: ImageCatalog) -> None:
    old, new = image("old"), image("new")
    await catalog.add(old, parse("a:1"))
    await catalog.add(new, parse("a:1"))
    assert catalog.find("a:1") is new
    assert catalog.names(old) == []


async def test_tags_come_before_digests(catalog: ImageCatalog) -> None:
    box = image("box")
    await catalog.add(box, parse(f"a@{DIGEST}"), parse("z:1"), parse("b:2"))
    assert [name.familiar for name in catalog.names(box)] == ["b:2", "z:1", f"a@{DIGEST}"]


async def test_descendants_are_children_and_theirs(catalog: ImageCatalog) -> None:
    base = image("base")
    child = image("child", parent=base.id)
    grandchild = image("grandchild", parent=child.id)
    for one in (base, child, grandchild, image("stranger")):
        await catalog.add(one)
    assert catalog.descendants(base) == {base.id, child.id, grandchild.id}
    assert catalog.children(base) == [child]


async def test_the_next_daemon_finds_images_and_names(catalog: ImageCatalog, state: StateStore) -> None:
    box = image("box", labels={"a": "b"})
    await catalog.add(box, parse("busybox:latest"))
    again = ImageCatalog(state)
    assert again.find("busybox") == box
    assert len(again) == 1


async def test_only_the_time_of_a_name_that_stays_may_be_lost(
    catalog: ImageCatalog, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut takes what was written lazily."""
    written = []
    commit = state.commit

    async def spied(*changes: Change, lazy: bool = False, then: Believe | None = None) -> None:
        written.append(lazy)
        await commit(*changes, lazy=lazy, then=then)

    monkeypatch.setattr(state, "commit", spied)
    one = image("one")
    again = structs.replace(one, last_tagged="2026-01-01T00:00:00Z")
    await catalog.add(one, parse("name:latest"))
    await catalog.add(again, parse("name:latest"))
    assert catalog.find("name") is again
    await catalog.add(structs.replace(again, author="another"), parse("name:latest"))
    await catalog.add(structs.replace(again, author="another"), parse("name:latest"), parse("second:latest"))
    await catalog.add(structs.replace(again, author="changed"), parse("name:latest"))
    assert written == [False, True, False, False, False]


async def test_deleting_takes_the_names_along(catalog: ImageCatalog, state: StateStore) -> None:
    box = image("box")
    await catalog.add(box, parse("a:1"), parse("b:1"))
    await catalog.forget_names(parse("a:1"))
    assert [name.familiar for name in catalog.names(box)] == ["b:1"]
    await catalog.delete(box)
    assert (list(catalog), state.load(IMAGE), state.load(NAME)) == ([], {}, {})


async def test_every_change_is_counted_when_it_can_be_seen(catalog: ImageCatalog) -> None:
    """Answers made of a catalog are right as long as its revision is the same."""
    box, seen = image("box"), {catalog.revision}
    entries = [IndexEntry(digest=box.manifest, size=1, image=box.id)]
    family = ImageIndex(digest=digest("index"), size=1, media_type=OCI_INDEX, manifests=entries)
    changes: list[Callable[[], Awaitable[object]]] = [
        lambda: catalog.add(box, parse("a:1")),
        lambda: catalog.add(box, parse("b:1")),
        lambda: catalog.forget_names(parse("b:1")),
        lambda: catalog.add(box, parse("c:1"), index=family),
        lambda: catalog.dissolve(family),
        lambda: catalog.delete(box),
    ]
    for change in changes:
        await change()
        assert catalog.revision not in seen
        seen.add(catalog.revision)
        for text in ("a:1", "b:1", "c:1"):
            with contextlib.suppress(NotFound):
                catalog.find(text)
        assert catalog.revision in seen


async def test_what_the_store_does_not_take_is_not_believed(state: FullStore) -> None:
    catalog = ImageCatalog(state)
    box, other = image("box"), image("other")
    await catalog.add(box, parse("box:1"))
    state.full = True
    for refused in (catalog.add(but(box, last_tagged="later"), parse("box:2")), catalog.add(other, parse("box:1"))):
        with pytest.raises(DiskFault):
            await refused
    assert list(catalog) == [box] and catalog.find("box:1") is box and catalog.find(box.id).last_tagged == ""
    for name in ("box:2", "other"):
        with pytest.raises(NotFound):
            catalog.find(name)
    state.full = False
    assert list(ImageCatalog(state)) == [box]
