"""How a build is told to clients of the classic API: lines of text, step by step in the order of the Dockerfile.

Steps may run side by side and end in any order: what one says is held back until all before it have ended.
"""

from collections.abc import Callable, Sequence

from husk.engine.builder.dockerfile.converted import ShownStep
from husk.engine.builder.graph import Vertex
from husk.engine.builder.operations import Exec
from husk.engine.builder.progress import LogLimit, Status

Write = Callable[[str], None]


class _Step:
    def __init__(self, shown: ShownStep) -> None:
        self.code = shown.code
        self.runs = False
        self.open: set[str] = set()
        self.cached = True
        self.said: list[str] = []


class ClassicProgress:
    def __init__(self, steps: Sequence[ShownStep], needed: Sequence[Vertex], write: Write) -> None:
        self._write = write
        self._limit = LogLimit()
        self._steps = [_Step(step) for step in steps]
        self._by_vertex: dict[str, _Step] = {}
        self._current = 0
        self._announced = False
        by_place = {step.location: found for step, found in zip(steps, self._steps, strict=True)}
        for vertex in needed:
            step = next((by_place[place] for place in vertex.locations if place in by_place), None)
            if step:
                step.open.add(vertex.digest)
                step.runs = step.runs or isinstance(vertex.operation.body, Exec)
                self._by_vertex[vertex.digest] = step

    def begin(self) -> None:
        self._go_on()

    def started(self, vertex: Vertex) -> None:
        pass

    def log(self, vertex: Vertex, data: bytes, *, stderr: bool) -> None:
        step = self._by_vertex.get(vertex.digest)
        if step and (data := self._limit.cut(vertex, data)):
            step.said.append(data.decode("utf-8", "replace"))
            self._go_on()

    def status(self, vertex: Vertex, status: Status) -> None:
        pass

    def ended(self, vertex: Vertex, *, cached: bool = False, error: str = "", cancelled: bool = False) -> None:
        step = self._by_vertex.get(vertex.digest)
        if step and not error and not cancelled:
            step.cached = step.cached and cached
            step.open.discard(vertex.digest)
            self._go_on()

    def _go_on(self) -> None:
        while self._current < len(self._steps):
            step = self._steps[self._current]
            if not self._announced:
                self._write(f"Step {self._current + 1}/{len(self._steps)} : {step.code}\n")
                self._announced = True
            for text in step.said:
                self._write(text)
            step.said = []
            if step.open:
                return
            if step.runs and step.cached:
                self._write(" ---> Using cache\n")
            self._current += 1
            self._announced = False
