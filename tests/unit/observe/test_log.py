"""The log has dockerd's two forms, one line per message."""

import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from husk.observe.log import JSONFormatter, TextFormatter
from husk.watch import Serving, serving


def record(message: str, level: int = logging.INFO, failure: bool = False, why: str = "broken") -> logging.LogRecord:
    trace = None
    if failure:
        try:
            raise ValueError(why)
        except ValueError:
            trace = sys.exc_info()
    made = logging.LogRecord("husk.x", level, __file__, 1, message, (), trace)
    made.created = 0.25
    return made


def test_text_is_dockerds_key_value_form():
    line = TextFormatter().format(record('say "hi"\n'))
    assert line == 'time="1970-01-01T00:00:00.250000Z" level=info msg="say \\"hi\\"\\n" module=husk.x'


def test_simple_words_stay_bare():
    assert "msg=started" in TextFormatter().format(record("started"))


def test_a_traceback_follows_the_line():
    first, *rest = TextFormatter().format(record("oops", logging.ERROR, failure=True)).splitlines()
    assert "level=error" in first and rest[-1] == "  ValueError: broken"


def test_json_is_one_object_per_line():
    text = JSONFormatter().format(record("oops\n", logging.WARNING, failure=True))
    document = json.loads(text)
    assert "\n" not in text
    assert (document["level"], document["msg"], document["module"]) == ("warning", "oops\n", "husk.x")
    assert document["traceback"].endswith("ValueError: broken")


@pytest.fixture
def served() -> Iterator[Serving]:
    one = Serving("a1-2")
    token = serving.set(one)
    yield one
    serving.reset(token)


def test_lines_name_the_request_that_is_served(served: Serving):
    assert TextFormatter().format(record("started")).endswith(" module=husk.x request_id=a1-2")
    assert json.loads(JSONFormatter().format(record("started")))["request_id"] == "a1-2"


def test_lines_of_what_a_request_left_behind_do_not(served: Serving):
    served.over = True
    assert "request_id" not in TextFormatter().format(record("started"))
    assert "request_id" not in JSONFormatter().format(record("started"))


def test_the_id_stands_before_a_traceback(served: Serving):
    first, *rest = TextFormatter().format(record("oops", logging.ERROR, failure=True)).splitlines()
    assert first.endswith("request_id=a1-2") and rest[-1] == "  ValueError: broken"


def test_no_terminal_obeys_what_others_have_written_and_no_line_begins_with_it():
    """An image's words are in messages and in errors, and people read the log at terminals."""
    hostile = 'no such file: \x1b]0;title\x07\x9b2J\x7f\ntime="1970" level=info msg=forged'
    for form in (TextFormatter(), JSONFormatter()):
        text = form.format(record(hostile, logging.ERROR, failure=True, why=hostile))
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
        _, *others = text.splitlines()
        assert all(line.startswith("  ") for line in others)
    assert json.loads(text)["msg"] == hostile and hostile in json.loads(text)["traceback"]
