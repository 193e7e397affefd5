"""The picture of a run: bars of Husk, dockerd and podman beside each other, for what people do most, as SVG.

    .venv/bin/python -m bench.chart build/bench/bench.json docs/images/bench.svg

Each group of bars has its own scale, for seconds and megabytes do not compare; a bar says its value. Colours follow the
reader's light or dark mode. Only figures that two engines have at least are drawn.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import msgspec

from bench.figures import Collection, Figure, Measured, Report, shown

# What is drawn: the script, the name of its figure, and the words for it.
DRAWN = (
    ("containers", "`docker run --rm`, bridge", "docker run --rm busybox true"),
    ("containers", "API create + start + wait + delete, bridge", "A container's life by the API"),
    ("containers", "start by 8 clients", "Start {of}"),
    ("containers", "memory of all processes with containers running", "Memory of the engine with {of}"),
    ("exec", "exec of `true`", "docker exec"),
    ("images", "pull", "Pull an image of {of}"),
    ("images", "save", "Save it"),
    ("images", "push", "Push it"),
    ("build", "build of five steps without the cache, classic", "Build of five steps"),
    ("build", "build of five steps without the cache, BuildKit", "The same by buildx"),
    ("logs", "`docker logs`", "docker logs of {of}"),
    ("startup", "until the first answer", "Daemon's start with {of}"),
)
ENGINES = ("husk", "dockerd-new", "podman")

WIDTH, LABEL, BAR, ROW, GAP, HEAD = 880, 300, 380, 15, 12, 64
STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; }
  .small { font-size: 11px; fill: #59636e; }
  .title { font-size: 16px; font-weight: 600; }
  .husk { fill: #1a7f5a; } .dockerd-new { fill: #7aa7d6; } .podman { fill: #b8a1d9; }
  .husk-text { font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .small { fill: #9198a1; }
    .husk { fill: #3fb98a; } .dockerd-new { fill: #4b7cb0; } .podman { fill: #8a6fb8; }
  }
"""


def chart(collection: Collection) -> str:
    """The whole picture."""
    drawn = {script for script, _, _ in DRAWN}
    reports = [report for report in collection.reports if report.script in drawn]
    titles = {name: title for report in reports for name, title in report.engines.items()}
    groups = list(_groups(collection))
    known = [name for name in ENGINES if any(name in figure.values for _, figure in groups)]
    parts = [
        '<text class="title" x="16" y="26">How long it takes: shorter bars are better</text>',
        *_legend([(name, _spoken(titles[name])) for name in known]),
    ]
    top = HEAD
    for words, figure in groups:
        bars = [(name, figure.values[name]) for name in known if name in figure.values]
        middle = top + len(bars) * ROW / 2 + 4
        parts.append(f'<text x="{LABEL - 14}" y="{middle:g}" text-anchor="end">{escape(words)}</text>')
        parts += _bars(bars, figure.unit, top)
        top += len(bars) * ROW + GAP
    parts.append(f'<text class="small" x="16" y="{top + 14}">{escape(_about(collection, reports))}</text>')
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + 28}" viewBox="0 0 {WIDTH} {top + 28}" '
        f'role="img" aria-label="Husk beside dockerd and podman">\n<style>{STYLE}</style>\n{inside}\n</svg>\n'
    )


def _about(collection: Collection, reports: Sequence[Report]) -> str:
    """Tell where the figures come from, and how busy the machine was."""
    machine = collection.machine
    command = f"make bench{' QUICK=1' if collection.quick else ''}"
    loads = [load for report in reports for load in report.load]
    busy = f", load average up to {max(loads):.0f}" if loads else ""
    where = f"{machine.date[:10]}, {machine.processors} processors{busy}"
    return f"{command}, {where}; medians, each group has its own scale"


def _groups(collection: Collection) -> list[tuple[str, Figure]]:
    """List what can be drawn, with its words; of a figure of several amounts, that of the largest: it came last."""
    figures = {(report.script, figure.name): figure for report in collection.reports for figure in report.figures}
    found = ((words, figures.get((script, name))) for script, name, words in DRAWN)
    return [
        (words.format(of=figure.of), figure)
        for words, figure in found
        if figure is not None and sum(name in figure.values for name in ENGINES) > 1
    ]


def _bars(bars: Sequence[tuple[str, Measured]], unit: str, top: float) -> list[str]:
    longest = max(value.median for _, value in bars) or 1
    parts = []
    for number, (name, value) in enumerate(bars):
        y, width = top + number * ROW, max(value.median / longest * BAR, 1)
        text, behind = shown(value.median, unit), LABEL + width + 6
        parts.append(
            f'<rect class="{name}" x="{LABEL}" y="{y:g}" width="{width:.1f}" height="{ROW - 3}" rx="2"/>'
            f'<text class="small {name}-text" x="{behind:.1f}" y="{y + 10:g}">{text}</text>'
        )
    return parts


def _legend(engines: Sequence[tuple[str, str]]) -> list[str]:
    parts, x = [], LABEL
    for name, title in engines:
        parts.append(f'<rect class="{name}" x="{x}" y="40" width="12" height="12" rx="2"/>')
        parts.append(f'<text x="{x + 18}" y="51">{escape(title)}</text>')
        x += 40 + 8 * len(title)
    return parts


def _spoken(title: str) -> str:
    """`dockerd 28.5` of `dockerd 28.5.2`, and Husk without its number."""
    name, _, version = title.partition(" ")
    return "Husk" if name == "husk" else f"{name} {'.'.join(version.split('.')[:2])}"


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    target.write_text(chart(msgspec.json.decode(source.read_bytes(), type=Collection)))


if __name__ == "__main__":
    main()
