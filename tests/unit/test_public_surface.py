"""The public part of the library changes on purpose only, and tells how it is used."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import husk
from tests.support.surface import collections, examples, surface

RECORDED = Path(__file__).with_name("public_surface.txt")
DOCUMENTED = sorted(set(husk.__all__) - {"__version__", "errors"})


def test_it_is_what_was_recorded():
    assert list(surface()) == RECORDED.read_text().splitlines(), (
        "the library's surface has changed. If that is meant, record it and tell users in CHANGELOG.md: "
        "python -m tests.support.surface > tests/unit/public_surface.txt"
    )


def test_everything_is_found_by_its_name():
    for name in husk.__all__:
        assert getattr(husk, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = husk.nothing  # type: ignore[attr-defined]


def test_tab_completion_offers_the_public_names_before_they_are_loaded():
    code = "import sys, husk; print(*dir(husk)); assert not any(name.startswith('husk.client') for name in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(husk.__all__)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_it_tells_what_it_is_and_shows_how_it_is_used(name):
    text = inspect.getdoc(getattr(husk, name)) or ""
    assert text, f"husk.{name} has no docstring"
    assert list(examples(text)), f"the docstring of husk.{name} has no example"


def test_every_method_tells_what_it_does():
    classes = [found for name in DOCUMENTED if inspect.isclass(found := getattr(husk, name))]
    silent = [
        f"{each.__name__}.{member}"
        for each in [*classes, *collections().values()]
        for member, found in inspect.getmembers(each, inspect.isfunction)
        if not member.startswith("_") and not inspect.getdoc(found) and found.__module__.startswith("husk")
    ]
    assert silent == []
