"""Templates, and the words that they may use for sizes and times. All that they show is escaped."""

import string
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from jinja2 import ChainableUndefined, Environment, FileSystemLoader, StrictUndefined, Undefined
from jinja2.nodes import Extends
from jinja2.runtime import Context
from jinja2.utils import missing

from husk.dashboard.assets import Assets

Block = Callable[[Context], Iterator[str]]
TEMPLATES = Path(__file__).parent / "templates"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


class Lacking(Undefined):
    """A value that is not there. One that a page was not given is a fault of ours; one that an engine's document has
    not is nothing: engines differ."""

    def __new__(cls, *arguments: Any, **named: Any) -> "Lacking":
        of = arguments[1] if len(arguments) > 1 else named.get("obj", missing)
        kind = StrictUndefined if of is missing else ChainableUndefined
        return cast("Lacking", kind(*arguments, **named))


class Renderer:
    """Makes HTML of templates."""

    def __init__(self, assets: Assets, directory: Path = TEMPLATES) -> None:
        # Of each template that was asked for a block: the blocks that it has, also those of the templates it extends.
        self._blocks: dict[str, dict[str, list[Block]]] = {}
        self._environment = environment = Environment(
            loader=FileSystemLoader(directory),
            autoescape=True,
            undefined=Lacking,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.globals["asset"] = assets.path
        environment.filters.update(size=size, moment=moment, ago=ago, short=short, percent=percent, seconds=seconds)
        environment.filters["word"] = word

    def warm(self, *first: str) -> None:
        """Read all templates before somebody waits for them: it takes longer than to make a page of one."""
        for template in (*first, *self._environment.list_templates()):
            self._environment.get_template(template)

    def page(self, template: str, values: Mapping[str, Any]) -> bytes:
        return self._environment.get_template(template).render(values).encode(errors="replace")

    def block(self, template: str, name: str, values: Mapping[str, Any]) -> bytes | None:
        """One block of a template alone, which is what a live region shows; None where it has no such block."""
        blocks = self._blocks_of(template)
        if name not in blocks:
            return None
        context = self._environment.get_template(template).new_context(dict(values))
        context.blocks = {each: list(found) for each, found in blocks.items()}
        return "".join(blocks[name][0](context)).encode(errors="replace")

    def _blocks_of(self, template: str) -> dict[str, list[Block]]:
        """Its blocks by name, each with those that it stands for in the templates above it: jinja2 itself knows them
        only while it renders all of a page."""
        if template not in self._blocks:
            loader = self._environment.loader
            assert loader is not None
            blocks: dict[str, list[Block]] = {}
            above = template
            while above:
                for name, block in self._environment.get_template(above).blocks.items():
                    blocks.setdefault(name, []).append(block)
                tree = self._environment.parse(loader.get_source(self._environment, above)[0])
                extended = tree.find(Extends)
                above = extended.template.as_const() if extended else ""
            self._blocks[template] = blocks
        return self._blocks[template]


def size(count: float) -> str:
    """`1.2 MB`, in powers of 1000 as docker shows sizes."""
    value = float(count)
    for unit in _UNITS:
        if abs(value) < 999.5 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 99.95 else f"{value:.1f} {unit}"


def seconds(value: float) -> str:
    """Write a time that something took: `0.3 s`, `12 s`, `5 min 3 s`."""
    if value < 59.5:
        return f"{value:.1f} s" if value < 9.95 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def percent(value: float) -> str:
    return f"{value:.1f} %"


def when(value: object) -> datetime | None:
    """A moment as the API tells it: seconds, or RFC 3339; None for one that never was, or that no calendar has:
    images say when they were made."""
    if isinstance(value, datetime):
        return value
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC) if value > 0 else None
        found = _read(value)
        return found.astimezone(UTC) if found else None
    except (ValueError, OverflowError, OSError):
        return None


def _read(value: object) -> datetime | None:
    """Read RFC 3339; ValueError for what is none."""
    text = str(value or "")
    if not text or text.startswith("0001-"):
        return None
    head, dot, rest = text.partition(".")
    digits = "".join(sign for sign in rest if sign in string.digits)[:6] if dot and rest.endswith("Z") else ""
    found = datetime.fromisoformat(f"{head}.{digits:0<6}+00:00" if digits else text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def moment(value: object) -> str:
    """`2026-01-31 23:59:59 UTC`, or an empty text."""
    found = when(value)
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if found else ""


def ago(value: object, now: datetime | None = None) -> str:
    """`5 minutes ago`, or `never`."""
    found = when(value)
    if found is None:
        return "never"
    seconds = max(0, int(((now or datetime.now(UTC)) - found).total_seconds()))
    for length, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            count = seconds // length
            return f"{count} {word}{'s' if count > 1 else ''} ago"
    return "now" if seconds < 5 else f"{seconds} seconds ago"


def word(name: str) -> str:
    """A name as one word of a path, whatever is in it: labels of images name projects."""
    return quote(name, safe="", errors="replace")


def short(identifier: str) -> str:
    """The first twelve digits of an id."""
    return identifier.removeprefix("sha256:")[:12]
