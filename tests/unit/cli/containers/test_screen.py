import asyncio
import io
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from husk.cli.containers.screen import UsageHistory, chart, screen, watch
from husk.cli.containers.stats import ContainerUsage
from husk.client.container import Container
from husk.client.stats import Stats

NOBODY: Any = None


def sample(name: str, cpu: float, memory: int = 0) -> ContainerUsage:
    used = Stats(time=datetime.now(UTC), cpu_percent=cpu, memory_usage=memory, attrs={})
    return ContainerUsage(Container(NOBODY, {"Id": name * 12, "Names": [f"/{name}"], "State": "running"}), used)


def test_charts():
    assert chart([], 100).strip() == ""
    assert chart([0, 1, 50, 100], 100).endswith(" ▁▄█")
    assert chart([0, 0], 0).strip() == ""
    assert len(chart([1] * 24, 1)) == 24


def test_who_uses_most_comes_first():
    history = UsageHistory()
    samples = [sample("a", 5), sample("b", 95, 3 << 20), ContainerUsage(sample("c", 0).container, None)]
    history.add(samples)
    written = io.StringIO()
    Console(file=written, width=160).print(screen(samples, history, 160))
    told = written.getvalue()
    assert "3 containers   CPU 100.0%   memory 3MiB" in told
    assert told.index("95.00%") < told.index("5.00%  ")
    assert "█" in history.memory("b" * 12)


def test_a_narrow_terminal_still_tells_the_names():
    history = UsageHistory()
    samples = [sample("a", 5, 300 << 20), sample("web-server", 95, 3 << 20)]
    for _ in range(30):
        history.add(samples)
    for width in (80, 94, 100, 140):
        written = io.StringIO()
        Console(file=written, width=width).print(screen(samples, history, width))
        told = written.getvalue()
        assert "web-server" in told and "95.00%" in told and "300MiB" in told and "█" in told
        assert ("BLOCK I/O" in told) == (width > 93)


def test_those_that_are_gone_are_forgotten():
    history = UsageHistory()
    history.add([sample("a", 50)])
    history.add([sample("b", 50)])
    assert history.cpu("a" * 12).strip() == "" and history.cpu("b" * 12).strip() != ""


async def test_what_fails_ends_it(capfd):
    class Engine:
        @property
        def containers(self):
            raise RuntimeError("gone")

    engine: Any = Engine()
    try:
        await asyncio.wait_for(watch(engine), 20)
    except RuntimeError as error:
        assert str(error) == "gone"
