"""The progress of a build for classic clients: step by step in the order of the Dockerfile, in dockerd's words.

Steps may run side by side and end in any order: what one says is held back until all before it have ended.

Behind each step stands an id. That of the last step is the id of the image. For each of the others no image is made:
their ids tell whether a step, and all before it, is the same as in another build.
"""

import asyncio
import codecs
import hashlib
import secrets
from collections.abc import Callable, Sequence
from typing import Protocol

from husk.builder.dockerfile.converted import ShownStep
from husk.builder.graph.graph import Vertex
from husk.builder.graph.progress import LogLimit, Status
from husk.engine.model.image import BuiltImage, Progress

Report = Callable[[Progress], None]
Later = Callable[[Callable[[], None]], object]

# These run nothing, and have no container.
_WITHOUT_CONTAINER = ("FROM", "COPY", "ADD")
# These run something, or change files; all others are done when their turn comes.
_AT_WORK = ("RUN", "WORKDIR")
_MAKE_FILES = (*_AT_WORK, "COPY", "ADD")
# Steps that are told, or read, before others have a turn.
_AT_ONCE = 50
_NONE: frozenset[str] = frozenset()
_RED, _NORMAL = "\x1b[91m", "\x1b[0m"


class Seen(Protocol):
    """The memory of steps that were carried out before: `SeenSteps`."""

    def made(self, id: str, /) -> int | None: ...

    def image(self, id: str, /) -> str: ...


class _Step:
    # There may be thousands, most of which have no vertex and say nothing: what each had of sets and lists would be
    # gone through by the collector of garbage, which holds everybody up.
    __slots__ = (
        "_decoders",
        "begun",
        "cached",
        "container",
        "has_container",
        "makes_files",
        "open",
        "own",
        "said",
        "shown",
    )

    def __init__(self, shown: ShownStep, own: frozenset[str], waits_for: frozenset[str]) -> None:
        self.shown = shown
        self.has_container = shown.keyword not in _WITHOUT_CONTAINER
        self.container = secrets.token_hex(6)
        self.begun = False  # its container is told
        self.makes_files = shown.keyword in _MAKE_FILES and bool(shown.vertices)
        self.own = own  # vertices that no step before it has
        self.open = waits_for
        self.cached = True
        self.said: list[str] | None = None
        self._decoders: dict[bool, codecs.IncrementalDecoder] | None = None

    def say(self, data: bytes, *, stderr: bool) -> None:
        self._decoders = self._decoders or {}
        decoder = self._decoders.setdefault(stderr, codecs.getincrementaldecoder("utf-8")("replace"))
        if text := decoder.decode(data):
            self.said = self.said or []
            self.said.append(f"{_RED}{text}{_NORMAL}" if stderr else text)


class ClassicProgress:
    def __init__(
        self,
        count: int,
        report: Report,
        seen: Seen,
        now: Callable[[], int],
        later: Later,
        *,
        no_cache: bool = False,
        removes: bool = True,
        removes_failed: bool = False,
    ) -> None:
        """`count` is that of the steps that have a number, `later` calls when those who are calling us are through.

        `removes` says that containers go with their steps, `removes_failed` that those of failed ones do, too.
        """
        self._count = count
        self._report = report
        self._seen = seen
        self._now = now
        self._later = later
        self._no_cache = no_cache
        self._removes = removes
        self._removes_failed = removes_failed
        self._limit = LogLimit()
        self._steps: list[_Step] = []
        self._by_vertex: dict[str, list[_Step]] = {}
        self._outputs: dict[str, Sequence[str]] = {}
        self._number = 0  # of the last step that was announced
        self._current = 0
        self._announced = False
        self._id = ""
        self._ids: dict[int, str] = {}  # of stages
        self._failed: _Step | None = None
        self._told_all = asyncio.Event()  # there is nothing to tell in the next turn
        self._told_all.set()
        self.seen: dict[str, int] = {}
        """Instructions without a file, and when they were carried out first."""
        self.images: dict[str, str] = {}
        """The image behind an id, where there is one."""
        self.made: int | None = None
        """The time of the last of these."""

    # --- the order of a build ----------------------------------------------------------------------------------------

    def begin(self, first: Sequence[str]) -> None:
        """The instructions up to the first FROM: what that one is, is found out now."""
        for code in first:
            self._announce(code)
        self._announced = True

    async def expect(self, steps: Sequence[ShownStep], needed: Sequence[Vertex]) -> None:
        """Take in all steps from the first FROM on."""
        wanted = {vertex.digest for vertex in needed}
        owned: set[str] = set()
        known = {_NONE: _NONE}  # most steps wait for the same as the one before
        for number, shown in enumerate(steps, 1):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            own = frozenset(shown.vertices) - owned if shown.vertices else _NONE
            owned |= own
            there = own | {shown.result.digest} if shown.result else own
            waits_for = there & wanted
            step = _Step(shown, own, known.setdefault(waits_for, waits_for))
            self._steps.append(step)
            for digest in step.open:
                self._by_vertex.setdefault(digest, []).append(step)
        self._go_on()

    async def caught_up(self) -> None:
        """Return when all is told that can be told by now."""
        while not self._told_all.is_set():
            await self._told_all.wait()

    def finish(self, image: str) -> None:
        """All is done; this is the image's id."""
        if self._steps and self._steps[-1].shown.keyword != "FROM":
            self.images[self._id] = image
            self._write(f" ---> {_short(image)}\n")
        self._report(Progress(aux=BuiltImage(id=image)))

    def tell_failure(self) -> ShownStep | None:
        """Tell what the step has said that did not end well, if one did not, though others are before it."""
        step = self._failed
        if step is None:
            return None
        if step in self._steps[self._current + 1 :] and not step.shown.from_trigger:
            between = self._steps[self._current + 1 : self._steps.index(step)]
            self._number += sum(not one.shown.from_trigger for one in between)
            self._announce(step.shown.code)
            self._container(step)
        self._speak(step)
        if step.begun and self._removes_failed:
            self._removed(step)
        return step.shown

    # --- Progress ----------------------------------------------------------------------------------------------------

    def started(self, vertex: Vertex) -> None:
        # What is found is told as started and ended at one moment.
        self._later(lambda: self._started(vertex))

    def log(self, vertex: Vertex, data: bytes, *, stderr: bool) -> None:
        steps = self._by_vertex.get(vertex.digest)
        if steps and (data := self._limit.cut(vertex, data)):
            steps[0].say(data, stderr=stderr)
            self._runs(steps[0])

    def status(self, vertex: Vertex, status: Status) -> None:
        pass

    def ended(
        self,
        vertex: Vertex,
        *,
        cached: bool = False,
        error: str = "",
        cancelled: bool = False,
        outputs: Sequence[str] = (),
    ) -> None:
        steps = self._by_vertex.get(vertex.digest, [])
        if error and steps and self._failed is None:
            self._failed = steps[0]
        if error or cancelled:
            return
        self._outputs[vertex.digest] = outputs
        for step in steps:
            step.cached = step.cached and (cached or vertex.digest not in step.own)
            step.open = step.open - {vertex.digest} or _NONE
        if steps:
            self._go_on()

    # --- what is told ------------------------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        self._report(Progress(stream=text))

    def _announce(self, code: str) -> None:
        self._number += 1
        self._write(f"Step {self._number}/{self._count} : {code}")
        self._write("\n")

    def _started(self, vertex: Vertex) -> None:
        for step in self._by_vertex.get(vertex.digest, ()):
            if vertex.digest in step.open & step.own:
                self._runs(step)

    def _runs(self, step: _Step) -> None:
        step.cached = False
        self._go_on()

    def _container(self, step: _Step) -> None:
        if step.has_container and not step.begun:
            step.begun = True
            self._write(f" ---> Running in {step.container}\n")

    def _speak(self, step: _Step) -> None:
        said, step.said = step.said, None
        for text in said or ():
            self._write(text)

    def _go_on(self) -> None:
        if not self._told_all.is_set():
            return
        for _ in range(_AT_ONCE):
            if not self._told_one():
                return
        self._told_all.clear()
        self._later(self._resume)

    def _resume(self) -> None:
        self._told_all.set()
        self._go_on()

    def _told_one(self) -> bool:
        """Tell what there is of the current step; True if that is all, and the next one's turn has come."""
        if self._current >= len(self._steps):
            return False
        step = self._steps[self._current]
        if not self._announced:
            self._announced = True
            if not step.shown.from_trigger:
                self._announce(step.shown.code)
            if step.shown.note:
                self._write(step.shown.note)
        if not step.cached and step.shown.keyword in _AT_WORK:
            self._container(step)
        self._speak(step)
        if step.open:
            return False
        self._done(step)
        self._current += 1
        self._announced = False
        return True

    def _done(self, step: _Step) -> None:
        shown = step.shown
        behind = self._steps[self._current + 1 : self._current + 2]
        triggered = any(one.shown.from_trigger for one in behind)
        if shown.keyword == "FROM":
            self._id = shown.base if shown.base_stage is None else self._ids.get(shown.base_stage, "")
        else:
            self._id = self._id_behind(shown)
            self._outcome(step)
        if shown.keyword == "FROM" and triggered:
            count = self._triggers()
            self._write(f"# Executing {count} build trigger{'s' if count > 1 else ''}\n")
        elif not triggered and (behind or shown.keyword == "FROM"):
            self._write(f" ---> {_short(self._shown_id)}\n")
        if behind and behind[0].shown.stage != shown.stage and self._id:
            self._ids[shown.stage] = self._id
            self._report(Progress(aux=BuiltImage(id=self._shown_id)))

    @property
    def _shown_id(self) -> str:
        return self._seen.image(self._id) or self._id

    def _outcome(self, step: _Step) -> None:
        if not step.makes_files:
            known = None if self._no_cache else self._seen.made(self._id)
            self.made = self.seen[self._id] = self._now() if known is None else known
            step.cached = known is not None
        if step.cached:
            self._write(" ---> Using cache\n")
            return
        self._container(step)
        if step.has_container and self._removes:
            self._removed(step)

    def _removed(self, step: _Step) -> None:
        self._write(f" ---> Removed intermediate container {step.container}\n")

    def _id_behind(self, shown: ShownStep) -> str:
        outputs = self._outputs.get(shown.result.digest, ()) if shown.result else ()
        stack = outputs[shown.result.output] if shown.result and outputs else ""
        told = f"{self._id}\0{shown.written}\0{stack}"
        return "sha256:" + hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()

    def _triggers(self) -> int:
        count = 0
        for step in self._steps[self._current + 1 :]:
            if not step.shown.from_trigger:
                break
            count += 1
        return count


def _short(id: str) -> str:
    return id.removeprefix("sha256:")[:12]
