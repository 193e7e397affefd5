"""Hooks of MkDocs for docs/: the words behind the language of a code block, which tests read, become its title."""

import re
from typing import Any

# How a test follows a block is nothing to its reader, but for these.
_SHOWN = re.compile(r"[\w./-]+\.\w+|in another terminal|ends with \d+")
_FENCE = re.compile(r"^(```)(\w+) ([^`\n{]+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _FENCE.sub(_titled, markdown)


def _titled(fence: re.Match[str]) -> str:
    shown = _SHOWN.fullmatch(fence[3])
    return fence[1] + fence[2] + (f' title="{shown[0]}"' if shown else "")
