"""The site of docs/: every page has a place in it, and code blocks keep what their readers need to know."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.site_hooks import on_page_markdown

ROOT = Path(__file__).resolve().parents[2]


def places(part: Any) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(part, str):
        yield part
    else:
        for item in part.values() if isinstance(part, dict) else part:
            yield from places(item)


def test_every_page_has_one_place() -> None:
    named = list(places(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert len(named) == len(set(named)) and set(named) == pages


@pytest.mark.parametrize(
    ("fence", "shown"),
    [
        ("```yaml compose.yaml", '```yaml title="compose.yaml"'),
        ("```console in another terminal", '```console title="in another terminal"'),
        ("```console not run: it needs another machine", "```console"),
        ("```console", "```console"),
    ],
)
def test_words_behind_a_language_become_a_title_or_go(fence: str, shown: str) -> None:
    assert on_page_markdown(f"Text\n\n{fence}\n$ x y\n```\n") == f"Text\n\n{shown}\n$ x y\n```\n"


def test_bars_in_code_of_a_table_are_plain_on_the_site() -> None:
    row = "| `str \\| None` and `` a \\| b `` | x \\| y |"
    assert on_page_markdown(f"`a \\| b`\n\n{row}\n") == "`a \\| b`\n\n| `str | None` and `` a | b `` | x \\| y |\n"
