"""Texts of strangers: what a terminal would obey is told."""

import json
import re
from collections.abc import Callable

import pytest

from husk.text import terminals

HOSTILE = "a\x1b]0;title\x07\x1b[2J\r\x08\x9b1A\x7f\x00b"


@pytest.mark.parametrize("shown", [terminals.visible, terminals.in_line, terminals.coloured, terminals.json_text])
def test_what_is_shown_is_not_obeyed(shown: Callable[[str], str]) -> None:
    given = HOSTILE if shown is not terminals.json_text else json.dumps(HOSTILE + "\udc9b", ensure_ascii=False)
    told = shown(given)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\udc80-\udcff]", told) and told.startswith(("a", '"a'))
    assert "\\x1b]0;title\\x07" in told or "\\u001b]0;title\\u0007" in told


def test_what_has_nothing_of_that_stays_as_it_is() -> None:
    text = "Grüße, 日本, ✓ \u00a0\tline\nanother"
    assert terminals.visible(text) == text
    assert terminals.in_line(text) == text.replace("\n", "\\n"), "a part of a line begins no other one"
    assert terminals.visible("\udcff") == "\\xff"
    assert terminals.in_line("a\ud800") == "a\\ud800", "half a letter cannot be written"
    assert terminals.json_text('"\ud800"') == '"\\ud800"'
    document = json.dumps({"a": [HOSTILE, "ü\udc80"]}, ensure_ascii=False, indent=1)
    assert json.loads(terminals.json_text(document)) == json.loads(document)


def test_letters_stay_in_their_order() -> None:
    given = "rm \u202ecod.exe\u2069"
    assert terminals.visible(given) == terminals.in_line(given) == "rm \\u202ecod.exe\\u2069"
    document = json.dumps(given, ensure_ascii=False)
    assert terminals.json_text(document).isascii() and json.loads(terminals.json_text(document)) == given


def test_a_traceback_begins_no_line_of_a_log() -> None:
    assert terminals.indented("Traceback:\nValueError: a\n\x1b[2J\n") == "  Traceback:\n  ValueError: a\n  \\x1b[2J"


def test_colours_may_stay() -> None:
    assert terminals.coloured("\x1b[1;31mred\x1b[0m and \x1b[2Jgone") == "\x1b[1;31mred\x1b[0m and \\x1b[2Jgone"
    assert terminals.coloured("\x1b[31\x1b[m\x1b[") == "\\x1b[31\x1b[m\\x1b["
