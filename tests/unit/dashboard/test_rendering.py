from datetime import UTC, datetime
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from husk.dashboard.assets import Assets
from husk.dashboard.rendering import Renderer, ago, moment, percent, seconds, short, size, when

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (123456, "123 kB"), (1_500_000, "1.5 MB"), (2e18, "2000 PB")],
)
def test_sizes(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2026-01-31T11:59:58.123456789Z", "now"),
        ("2026-01-31T11:59:30Z", "30 seconds ago"),
        ("2026-01-31T12:59:00+02:00", "1 hour ago"),
        (datetime(2026, 1, 29, 12, 0, tzinfo=UTC), "2 days ago"),
        (NOW.timestamp() - 120, "2 minutes ago"),
        ("0001-01-01T00:00:00Z", "never"),
        ("", "never"),
        ("nonsense", "never"),
        (0, "never"),
    ],
)
def test_how_long_ago(value: object, text: str) -> None:
    assert ago(value, NOW) == text


def test_moments_and_ids() -> None:
    assert moment("2026-01-31T11:59:58.123456789Z") == "2026-01-31 11:59:58 UTC"
    assert moment("0001-01-01T00:00:00Z") == ""
    assert when("2026-01-31T11:59:58") == datetime(2026, 1, 31, 11, 59, 58, tzinfo=UTC)
    assert short("sha256:" + "ab" * 32) == "abababababab"
    assert percent(12.345) == "12.3 %"


@pytest.mark.parametrize(
    ("value", "text"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (12.3, "12 s"), (59.7, "1 min 0 s"), (3720, "1 h 2 min")]
)
def test_how_long_it_took(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.fixture
def renderer(tmp_path: Path) -> Renderer:
    (tmp_path / "a.html").write_text("<p>{% block inner %}{{ value }}{% endblock %}</p>")
    return Renderer(Assets(tmp_path), tmp_path)


def test_all_that_is_shown_is_escaped(renderer: Renderer) -> None:
    assert renderer.page("a.html", {"value": '<script>"'}) == b"<p>&lt;script&gt;&#34;</p>"


def test_a_block_is_a_part_of_its_page(renderer: Renderer) -> None:
    assert renderer.block("a.html", "inner", {"value": "<x>"}) == b"&lt;x&gt;"
    assert renderer.block("a.html", "other", {"value": 1}) is None


def test_a_block_may_be_of_a_template_that_is_extended(tmp_path: Path) -> None:
    (tmp_path / "base.html").write_text("<p>{% block a %}A{% block b %}B{% endblock %}{% endblock %}</p>")
    (tmp_path / "child.html").write_text('{% extends "base.html" %}{% block b %}{{ super() }}{{ value }}{% endblock %}')
    renderer = Renderer(Assets(tmp_path), tmp_path)
    assert renderer.block("child.html", "b", {"value": 1}) == b"B1"
    assert renderer.block("child.html", "a", {"value": 1}) == b"AB1"


def test_a_value_that_is_missing_is_a_fault(renderer: Renderer) -> None:
    with pytest.raises(UndefinedError):
        renderer.page("a.html", {})


def test_what_an_engine_does_not_tell_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>{{ (told.A.B or []) | join }}{{ told.C }}</p>")
    assert Renderer(Assets(tmp_path), tmp_path).page("a.html", {"told": {}}) == b"<p></p>"


def test_text_that_is_none_is_shown_somehow(renderer: Renderer) -> None:
    assert renderer.page("a.html", {"value": "\udcff"}) == b"<p>?</p>"


def test_what_was_read_before_is_not_read_again(renderer: Renderer, tmp_path: Path) -> None:
    renderer.warm()
    (tmp_path / "a.html").unlink()
    assert renderer.page("a.html", {"value": 1}) == b"<p>1</p>"


@pytest.mark.parametrize("made", ["9999-12-31T23:59:59-14:00", 1e300, float("inf"), float("nan"), 1 << 80, "soon"])
def test_a_moment_that_no_calendar_has_is_none(made: object) -> None:
    assert moment(made) == "" and ago(made) == "never"
