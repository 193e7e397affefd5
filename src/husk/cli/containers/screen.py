"""The live screen of `husk top`: a line for each container, with charts of the last minutes. By rich."""

import asyncio
import os
import termios
import tty
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.live import Live
from rich.table import Table
from rich.text import Text

from husk.aio.tasks import Tasks
from husk.cli.containers.stats import ContainerUsage, rounds, row
from husk.cli.kit.words import binary_size, in_line
from husk.client.client import Client

_STEPS = " ▁▂▃▄▅▆▇█"
# Charts take the room that is left beside the other columns; where there is little, files are not told of.
_WIDEST, _NARROWEST = 24, 4
_OTHERS, _BLOCKS = 66, 20
_BUSY, _VERY_BUSY = 50.0, 90.0


class UsageHistory:
    """The use of processor and memory by each container in the last rounds; those that are gone are forgotten."""

    def __init__(self) -> None:
        self._cpu: dict[str, deque[float]] = {}
        self._memory: dict[str, deque[float]] = {}

    def add(self, samples: Sequence[ContainerUsage]) -> None:
        known = {sample.container.id for sample in samples}
        for past in (self._cpu, self._memory):
            for gone in past.keys() - known:
                del past[gone]
        for container, used in samples:
            if used is not None:
                self._cpu.setdefault(container.id, deque(maxlen=_WIDEST)).append(used.cpu_percent)
                self._memory.setdefault(container.id, deque(maxlen=_WIDEST)).append(float(used.memory_usage))

    def cpu(self, identity: str, width: int = _WIDEST) -> str:
        values = self._cpu.get(identity, ())
        return chart(values, max(100.0, *values, 0.0), width)

    def memory(self, identity: str, width: int = _WIDEST) -> str:
        values = self._memory.get(identity, ())
        return chart(values, max(values, default=0.0), width)


def chart(values: Iterable[float], most: float, width: int = _WIDEST) -> str:
    """A column of blocks for each of the last values, the newest at the right end."""
    values = list(values)[-width:]
    heights = [round(value / most * (len(_STEPS) - 1)) if most > 0 else 0 for value in values]
    # What is little is still something.
    columns = (_STEPS[max(height, 1) if value > 0 else 0] for height, value in zip(heights, values, strict=True))
    return "".join(columns).rjust(width)


def screen(samples: Sequence[ContainerUsage], history: UsageHistory, width: int) -> Table:
    """All of it, for a terminal so many columns wide: who uses most comes first."""
    blocks = width >= _OTHERS + _BLOCKS + 2 * _NARROWEST
    charts = min(_WIDEST, max(_NARROWEST, (width - _OTHERS - (_BLOCKS if blocks else 0)) // 2))
    used = [sample.stats for sample in samples if sample.stats is not None]
    cpu, memory = sum(each.cpu_percent for each in used), sum(each.memory_usage for each in used)
    title = f"{len(samples)} containers   CPU {cpu:.1f}%   memory {binary_size(memory)}   (q leaves)"
    found = Table(box=SIMPLE_HEAD, show_edge=False, title=title, title_justify="left", expand=True)
    for heading in ("NAME", "CPU %", "", "MEM USAGE", "", "NET I/O", *(("BLOCK I/O",) if blocks else ()), "PIDS"):
        right = heading in ("CPU %", "PIDS")
        least = 10 if heading == "NAME" else None
        found.add_column(heading, justify="right" if right else "left", no_wrap=True, min_width=least)
    for sample in sorted(samples, key=lambda each: -each.stats.cpu_percent if each.stats else 0.0):
        shown, identity = row(sample), sample.container.id
        percent = sample.stats.cpu_percent if sample.stats else 0.0
        colour = "red" if percent >= _VERY_BUSY else "yellow" if percent >= _BUSY else "green"
        found.add_row(
            Text(in_line(shown["Name"]), style="bold"),
            Text(shown["CPUPerc"], style=colour),
            Text(history.cpu(identity, charts), style=colour),
            shown["MemUsage"].split(" / ")[0],
            Text(history.memory(identity, charts), style="cyan"),
            shown["NetIO"],
            *([shown["BlockIO"]] if blocks else []),
            shown["PIDs"],
        )
    return found


async def watch(engine: Client) -> None:
    """Show it until the person has seen enough."""
    tasks, enough = Tasks(), asyncio.Event()
    with Live(screen=True, auto_refresh=False) as live, _keys(enough):
        showing = tasks.spawn(_show(engine, live), "screen", awaited=True)
        leaving = tasks.spawn(enough.wait(), "keys", awaited=True)
        try:
            await asyncio.wait({showing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if showing.done():
                showing.result()
        finally:
            await tasks.cancel_all()


async def _show(engine: Client, live: Live) -> None:
    history = UsageHistory()
    async for samples in rounds(engine, ()):
        history.add(samples)
        live.update(screen(samples, history, live.console.width), refresh=True)


@contextmanager
def _keys(enough: asyncio.Event) -> Iterator[None]:
    """`q` and ctrl-C, read one by one and not shown."""
    if not os.isatty(0):
        yield
        return

    before = termios.tcgetattr(0)
    loop = asyncio.get_running_loop()

    def typed() -> None:
        if os.read(0, 64)[:1] in (b"q", b"Q", b"\x1b", b""):
            enough.set()

    tty.setcbreak(0, termios.TCSANOW)
    loop.add_reader(0, typed)
    try:
        yield
    finally:
        loop.remove_reader(0)
        termios.tcsetattr(0, termios.TCSADRAIN, before)
