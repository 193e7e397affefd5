import io
import json

from rich.console import Console

from husk.cli.kit.bars import Bars
from husk.cli.kit.progress import Documents, PlainLines, teller
from husk.client.progress import PullProgress
from tests.support.terminal import stdout_terminal

STEPS = [
    PullProgress(status="Pulling from library/busybox", id="latest"),
    PullProgress(status="Downloading", id="abc", current=5, total=10),
    PullProgress(status="Pull complete", id="abc"),
    PullProgress(status="Already exists", id="def"),
    PullProgress(status="Status: done"),
]


def test_lines_without_how_far_it_is(capfd):
    with PlainLines(1) as told:
        for step in STEPS:
            told.tell(step)
    assert capfd.readouterr().out.splitlines() == [
        "latest: Pulling from library/busybox",
        "abc: Pull complete",
        "def: Already exists",
        "Status: done",
    ]


def test_documents(capfd):
    with Documents() as told:
        told.tell(STEPS[1])
    assert json.loads(capfd.readouterr().out) == {"Id": "abc", "Status": "Downloading", "Current": 5, "Total": 10}


def test_bars_at_a_terminal(capfd):
    written = io.StringIO()
    with Bars(1, Console(file=written, force_terminal=True, width=100)) as told:
        for step in STEPS:
            told.tell(step)
    assert "Pulling from library/busybox" in written.getvalue() and "Pull complete" in written.getvalue()
    with stdout_terminal():
        assert isinstance(teller(1), Bars)
        assert isinstance(teller(1, as_json=True), Documents)
