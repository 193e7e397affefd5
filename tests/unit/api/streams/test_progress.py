"""Progress: the records and bars that docker users know."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.api.streams.progress import error_line, human_size, progress_bar, progress_line
from husk.engine.model.image import Progress


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0B"), (1, "1B"), (999, "999B"), (1000, "1kB"), (1234, "1.234kB"), (4_261_550, "4.262MB"), (3e9, "3GB")],
)
def test_sizes_have_four_digits(count: float, text: str) -> None:
    assert human_size(count) == text


def test_a_bar_fills() -> None:
    assert progress_bar(0, 0) == ""
    assert progress_bar(500, 0) == "    500B"
    assert progress_bar(0, 100) == "[>" + " " * 50 + "]       0B/100B"
    assert progress_bar(1_200_000, 3_000_000) == "[" + "=" * 20 + ">" + " " * 30 + "]    1.2MB/3MB"
    assert progress_bar(100, 100) == "[" + "=" * 50 + ">]     100B/100B"
    assert progress_bar(200, 100) == "[" + "=" * 50 + ">]     200B"


@given(st.integers(0, 10**13), st.integers(1, 10**13))
def test_a_bar_is_always_as_wide(current: int, total: int) -> None:
    assert progress_bar(current, total).index("]") == 52


def test_a_layer_has_details_and_a_statement_has_none() -> None:
    assert json.loads(progress_line(Progress(status="Pulling fs layer", id="0123456789ab"))) == {
        "status": "Pulling fs layer",
        "progressDetail": {},
        "id": "0123456789ab",
    }
    assert json.loads(progress_line(Progress(status="Pulling from library/busybox", id="latest"))) == {
        "status": "Pulling from library/busybox",
        "id": "latest",
    }
    assert json.loads(progress_line(Progress(status="Downloading", id="0123456789ab", current=1, total=2))) == {
        "status": "Downloading",
        "progressDetail": {"current": 1, "total": 2},
        "progress": progress_bar(1, 2),
        "id": "0123456789ab",
    }


def test_an_error_says_it_twice() -> None:
    assert json.loads(error_line("no")) == {"errorDetail": {"message": "no"}, "error": "no"}
