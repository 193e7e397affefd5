"""The picture of a run."""

import re
from pathlib import Path
from xml.etree import ElementTree

from bench.chart import BAR, DRAWN, chart
from bench.figures import Collection, Report
from tests.unit.bench.test_tables import MACHINE

BENCH = Path(__file__).resolve().parents[3] / "bench"
SVG = "{http://www.w3.org/2000/svg}"


def collection(**taken: float) -> Collection:
    titles = {"husk": "husk 0.1", "dockerd-new": "dockerd 28.5.2", "podman": "podman 5.8.6"}
    report = Report("containers", "Time of an exec")
    for engine, value in taken.items():
        name = engine.replace("_", "-")
        report.engines[name] = titles[name]
        report.add(name, "start by 8 clients", "s", [value], of="<50> containers")
    return Collection(MACHINE, [report])


def bars(text: str) -> dict[str, float]:
    found = ElementTree.fromstring(text).iter(f"{SVG}rect")
    return {bar.attrib["class"]: float(bar.attrib["width"]) for bar in found if bar.attrib["width"] != "12"}


def test_bars_are_as_long_as_their_values_beside_the_longest() -> None:
    assert bars(chart(collection(husk=1, dockerd_new=4, podman=2))) == {
        "husk": BAR / 4,
        "dockerd-new": BAR,
        "podman": BAR / 2,
    }


def test_what_is_written_is_escaped_and_names_are_short() -> None:
    words = [each.text for each in ElementTree.fromstring(chart(collection(husk=1, podman=2))).iter(f"{SVG}text")]
    assert {"Husk", "podman 5.8", "Start <50> containers", "1.0 s", "2.0 s"} <= set(words)


def test_the_picture_tells_how_it_was_made_and_how_busy_the_machine_was() -> None:
    found = collection(husk=1, podman=2)
    found.quick, found.reports[0].load = True, [0.4, 11.7]
    assert "make bench QUICK=1, 2026-11-17, 2 processors, load average up to 12; medians" in chart(found)


def test_a_figure_of_one_engine_alone_is_not_drawn() -> None:
    assert bars(chart(collection(husk=1))) == {}


def test_a_reader_in_the_dark_has_other_colours() -> None:
    assert "prefers-color-scheme: dark" in chart(collection())


def test_what_is_drawn_is_what_scripts_measure() -> None:
    """A figure that gets another name in its script would leave the picture without a word."""
    for script, name, _ in DRAWN:
        source = (BENCH / f"{script}.py").read_text()
        stem = re.split(r", (?:bridge|classic|BuildKit)$", name)[0]
        assert f'"{stem}' in source, f"bench/{script}.py measures no {name}"
