"""Hooks of MkDocs for docs/.

The words behind the language of a code block, which tests read, become its title. A bar in code in a table has a
backslash before it, as GitHub wants it, where Python-Markdown wants it plain.
"""

import re
from typing import Any

# How a test follows a block is nothing to its reader, but for these.
_SHOWN = re.compile(r"[\w./-]+\.\w+|in another terminal|ends with \d+")
_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_FENCE = re.compile(r"^(```)(\w+) ([^`\n{]+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _ROW.sub(_with_plain_bars, _FENCE.sub(_titled, markdown))


def _titled(fence: re.Match[str]) -> str:
    shown = _SHOWN.fullmatch(fence[3])
    return fence[1] + fence[2] + (f' title="{shown[0]}"' if shown else "")


def _with_plain_bars(row: re.Match[str]) -> str:
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])
