import os
import re
from pathlib import Path

import pytest

import husk.cli
from husk.cli.kit import writing
from tests.support.terminal import stdout_terminal


def test_all_is_written_at_once(capfd):
    writing.say("out")
    writing.complain("err")
    writing.document({"a": [1]})
    writing.line({"b": None})
    out, err = capfd.readouterr()
    assert (out, err) == ('out\n{"a":[1]}\n{"b":null}\n', "err\n")


HOSTILE, SHOWN = "web\x1b[2J\x9b1A\r", "web\\x1b[2J\\x9b1A\\x0d\n"


def test_nothing_that_is_told_is_obeyed_by_a_terminal(capfd):
    writing.say(HOSTILE)
    writing.complain(HOSTILE)
    writing.line({HOSTILE: HOSTILE})
    writing.say(HOSTILE, exact=True)
    out, err = capfd.readouterr()
    told = '"web\\u001b[2J\\u009b1A\\r"'
    assert err == SHOWN
    assert out == f"{SHOWN}{{{told}:{told}}}\n{HOSTILE}\n", "a program that reads gets what is there"


def test_a_terminal_is_never_given_what_it_would_obey(capfd):
    with stdout_terminal() as shown:
        writing.say(HOSTILE, exact=True)
        assert shown() == SHOWN


def test_a_document_for_people_is_indented(capfd):
    with stdout_terminal() as shown:
        writing.document({"a": 1})
        assert shown() == '{\n  "a": 1\n}\n'


def test_who_reads_no_more_ends_the_program_without_a_word():
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(SystemExit) as left:
        writing.write(writer, b"x")
    os.close(writer)
    assert left.value.code == 141


def test_a_full_disk_is_said():
    with open("/dev/full", "wb") as full, pytest.raises(SystemExit, match="cannot write: No space left"):
        writing.write(full.fileno(), b"x")


def test_whatever_is_printed_otherwise_is_known():
    """Each of these makes what is foreign in it visible itself (`words.visible`, `words.in_line`), or has none."""
    ways = (r"(?<![\w.])print\(", r"click\.echo\(", r"[cC]onsole(?:\([^)]*\))?\.print\(", r"sys\.std(?:out|err)\.")
    printing = re.compile("|".join(ways))
    places = Path(husk.cli.__file__).parent
    found = {str(each.relative_to(places)) for each in places.rglob("*.py") if printing.search(each.read_text())}
    assert found == {
        "__init__.py", "doctor.py", "kit/bars.py", "kit/kinds.py", "kit/rich_tables.py", "lab/holder.py",
        "migrate/report.py", "serve.py", "start.py", "store.py", "system/contexts.py", "system/help.py",
    }  # fmt: skip


def test_half_a_letter_is_told_and_ends_nothing(capfd):
    writing.say("a\ud800b")
    writing.say("a\ud800b", exact=True)
    assert capfd.readouterr().out == "a\\ud800b\na?b\n"
