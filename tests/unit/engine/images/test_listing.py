"""`docker images` and its filters."""

from contextlib import suppress

import pytest

from husk.engine.images.catalog import ImageCatalog
from husk.engine.images.listing import FILTERS, NamePatterns, select
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter, NotFound
from husk.registry.reference import parse
from husk.text.re2 import TooMuch
from tests.unit.engine.records import SECOND, digest, image


@pytest.fixture
async def catalog(catalog: ImageCatalog) -> ImageCatalog:
    base = image("base", created_ns=1 * SECOND, labels={"os": "l"})
    await catalog.add(base, parse("base:1"), parse(f"base@{digest('base manifest')}"))
    layer = image("layer", created_ns=2 * SECOND, parent=base.id)
    await catalog.add(layer)
    await catalog.add(image("app", created_ns=3 * SECOND, parent=layer.id), parse("quay.io/me/app:2"))
    await catalog.add(image("loose", created_ns=4 * SECOND))
    await catalog.add(image("pinned", created_ns=5 * SECOND), parse(f"pinned@{digest('pinned manifest')}"))
    return catalog


def names(catalog: ImageCatalog, fields: dict[str, list[str]] | None = None, *, all: bool = False) -> list[str]:
    fields = fields or {}
    assert set(fields) <= set(FILTERS)
    known = {digest(name): name for name in ("base", "layer", "app", "loose", "pinned")}
    return [known[one.id] for one in select(catalog, all, Filters(fields))]


async def test_the_newest_comes_first_and_what_lies_between_is_hidden(catalog: ImageCatalog) -> None:
    assert names(catalog) == ["pinned", "loose", "app", "base"]
    assert names(catalog, all=True) == ["pinned", "loose", "app", "layer", "base"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"dangling": ["true"]}, ["pinned", "loose"]),
        ({"dangling": ["false"]}, ["pinned", "app", "base"]),
        ({"label": ["os=l"]}, ["base"]),
        ({"reference": ["base"]}, ["base"]),
        ({"reference": ["*"]}, ["pinned", "base"]),
        ({"reference": ["quay.io/*/app:*", "none"]}, ["app"]),
        ({"reference": ["app"]}, []),
        ({"before": ["quay.io/me/app:2"]}, ["base"]),
        ({"since": ["quay.io/me/app:2"]}, ["pinned", "loose"]),
        ({"until": ["4"]}, ["app", "base"]),
        ({"until": ["1970-01-01T00:00:04Z"]}, ["app", "base"]),
    ],
)
async def test_a_filter_takes_what_dockerd_takes(
    catalog: ImageCatalog, fields: dict[str, list[str]], expected: list[str]
) -> None:
    assert names(catalog, fields) == expected


async def test_an_image_to_compare_with_must_be_there(catalog: ImageCatalog) -> None:
    with pytest.raises(NotFound):
        names(catalog, {"before": ["nothing"]})


async def test_an_unclear_filter_is_refused(catalog: ImageCatalog) -> None:
    with pytest.raises(InvalidParameter):
        names(catalog, {"dangling": ["perhaps"]})


@pytest.mark.parametrize(
    ("name", "pattern", "taken"),
    [
        ("busybox:1", "busybox", True),
        ("busybox:1", "busybox:1", True),
        ("busybox:1", "busybox:*", True),
        ("busybox:1", "busy*", True),
        ("busybox:1", "b?sybox", True),
        ("busybox:1", "alpine", False),
        ("me/app:1", "*", False),
        ("me/app:1", "*/app", True),
        ("me/app:1", "me/*:1", True),
        ("app:1.2", "app:[0-9].?", True),
        ("app:1.2", "app:[!0]*", True),
        ("app:1.2", "app:[!1]*", False),
        ("app:1.2", "app:1[.+]2*", True),
        ("app:102", "app:1.*", False),
        ("app:1.2", "app:[1*", False),
        ("app:1.2", "**a**:**", True),
    ],
)
def test_a_pattern_does_not_cross_a_slash(name: str, pattern: str, taken: bool) -> None:
    assert NamePatterns([pattern]).match(parse(name)) is taken


@pytest.mark.parametrize("patterns", [[f"{number}*" for number in range(65)], ["*" * 2049]])
def test_patterns_that_would_take_long_are_refused(patterns: list[str]) -> None:
    with pytest.raises(InvalidParameter, match="at most 64 patterns with wildcards"):
        NamePatterns(patterns)
    assert NamePatterns(str(number) for number in range(2000)).match(parse("1999:1"))


@pytest.mark.parametrize("pattern", ["a*" * 1000 + "b", "[a-c]*" * 300 + "b", "[" * 2000 + "*", "?*" * 1000])
def test_hostile_patterns_are_matched_in_linear_time(pattern: str) -> None:
    """Those that backtrack never end; what would take too much is refused."""
    with suppress(TooMuch):
        patterns = NamePatterns([pattern])
        for _ in range(50):
            assert not patterns.match(parse("a" * 120 + ":" + "a" * 100))
