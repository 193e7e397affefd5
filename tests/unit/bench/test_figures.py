"""Figures of all scripts have one shape, and show what they are."""

import msgspec
import pytest

from bench.figures import Figure, Measured, Report, joined, shown, times_as_much


def test_rounds_become_a_median_and_the_best_of_them() -> None:
    report = Report("exec", "Time of an exec")
    report.add("husk", "exec", "ms", [3.0, 1.0, 2.0])
    report.add("husk", "answers", "/s", [3.0, 1.0, 2.0], better="higher")
    assert [figure.values["husk"] for figure in report.figures] == [Measured(2.0, 1.0, 3), Measured(2.0, 3.0, 3)]


def test_engines_share_a_figure_and_amounts_do_not() -> None:
    report = Report("containers", "Time of an exec")
    for engine in ("husk", "podman"):
        for of in ("10 containers", "50 containers"):
            report.add(engine, "list", "ms", [1.0], of=of)
    assert [(figure.of, list(figure.values)) for figure in report.figures] == [
        ("10 containers", ["husk", "podman"]),
        ("50 containers", ["husk", "podman"]),
    ]
    assert report.engines == {"husk": "husk", "podman": "podman"}


def test_a_report_is_the_same_after_a_way_through_json() -> None:
    report = Report("exec", "Time of an exec", engines={"husk": "husk 1"}, load=[0.5, 1.5], seconds=3.0, quick=True)
    report.add("husk", "exec", "ms", [1.0])
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


@pytest.mark.parametrize(("better", "factor"), [("lower", 4.0), ("higher", 0.25)])
def test_the_first_engine_is_so_many_times_as_good(better, factor) -> None:
    figure = Figure("x", "ms", {"husk": Measured(2, 2, 1), "podman": Measured(8, 8, 1)}, better=better)
    assert times_as_much(figure, "podman", "husk") == factor
    assert times_as_much(figure, "husk", "husk") is None
    assert times_as_much(figure, "dockerd", "husk") is None


def test_nothing_is_not_compared_with() -> None:
    figure = Figure("x", "s", {"husk": Measured(0, 0, 1), "podman": Measured(8, 8, 1)})
    assert times_as_much(figure, "podman", "husk") is None


@pytest.mark.parametrize(
    ("value", "text"), [(0.237, "0.24 s"), (3.14, "3.1 s"), (19.2, "19 s"), (26100.4, "26,100 s"), (0, "0.00 s")]
)
def test_a_figure_has_the_digits_that_tell_something(value, text) -> None:
    assert shown(value, "s") == text


def test_reports_of_one_script_are_joined() -> None:
    one = Report("exec", "Time of an exec", engines={"husk": "husk 1"}, load=[1.0, 2.0], seconds=3.0)
    other = Report("exec", "Time of an exec", engines={"podman": "podman 5"}, load=[3.0, 4.0], seconds=4.0)
    one.add("husk", "exec", "ms", [1.0])
    other.add("podman", "exec", "ms", [2.0])
    other.add("podman", "memory", "MiB", [9.0])
    whole = joined([one, other])
    assert (whole.engines, whole.load, whole.seconds) == ({"husk": "husk 1", "podman": "podman 5"}, [1.0, 4.0], 7.0)
    assert [(figure.name, sorted(figure.values)) for figure in whole.figures] == [
        ("exec", ["husk", "podman"]),
        ("memory", ["podman"]),
    ]
    assert list(one.figures[0].values) == ["husk"]
