import io

from rich.console import Console

from husk.cli.kit.bars import Bars
from husk.client.progress import PullProgress


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
