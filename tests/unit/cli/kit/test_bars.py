import io

from rich.console import Console

from husk.cli.kit.bars import Bars, BuildBars
from husk.client.progress import BuildProgress, PullProgress


def test_a_bar_for_each_layer():
    written = io.StringIO()
    with Bars(1, Console(file=written, force_terminal=True, width=100)) as told:
        told.tell(PullProgress(status="Pulling from library/busybox", id="latest"))
        told.tell(PullProgress(status="Downloading", id="abc", current=5, total=10))
        told.tell(PullProgress(status="Pull complete", id="abc"))
        told.tell(PullProgress(status="Already exists", id="def"))
        told.tell(PullProgress(status="Status: done"))
    told_of = written.getvalue()
    assert "latest: Pulling from library/busybox" in told_of and "Status: done" in told_of
    assert "10/10 bytes" in told_of and "1/1 byte" in told_of


def test_a_bar_for_the_steps_of_a_build():
    written = io.StringIO()
    with BuildBars(1, Console(file=written, force_terminal=True, width=100)) as told:
        told.step(BuildProgress(text="Step 1/2 : FROM [a]busybox\n", step=1, steps=2))
        told.step(BuildProgress(pull=PullProgress(status="Downloading", id="abc", current=5, total=10)))
        told.step(BuildProgress(text="Step 2/2 : RUN make\n", step=2, steps=2))
        told.step(BuildProgress(text="half a "))
        told.step(BuildProgress(text="line\nand "))
        told.step(BuildProgress(text="the \x1b[31mrest"))
        told.step(BuildProgress(image="sha256:1"))
    told_of = written.getvalue()
    assert "FROM [a]busybox" in told_of and "half a line\n" in told_of and "rest" in told_of
    assert "done" in told_of and "2/2 steps" in told_of and "5/10 bytes" in told_of


def test_what_is_told_is_neither_obeyed_nor_markup():
    hostile = "[link=http://evil.example]\x1b]0;title\x07\x1b[2J\x9b1A"
    written = io.StringIO()
    with BuildBars(1, Console(file=written, force_terminal=True, width=200)) as told:
        told.tell(PullProgress(status=hostile, id=hostile, current=5, total=10))
        told.tell(PullProgress(status=hostile))
        told.step(BuildProgress(text=f"{hostile}\n\x1b[31mred\n"))
    told_of = written.getvalue()
    for sequence in ("\x1b]", "\x07", "\x1b[2J\x9b", "\x9b"):
        assert sequence not in told_of
    assert told_of.count("[link=http://evil.example]") >= 3 and "\x1b[31mred" in told_of


def test_a_line_that_never_ends_is_told_in_pieces():
    written = io.StringIO()
    with BuildBars(1, Console(file=written, width=100)) as bars:
        for _ in range(20):
            bars.step(BuildProgress(text="x" * 10_000))
        assert written.getvalue().count("x") >= 130_000
    assert written.getvalue().count("x") == 200_000
