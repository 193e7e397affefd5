"""Works on the files of builds, in worker processes that see those files and nothing else.

File systems are stacks (`diffs`): what is made is one more diff on top of the stack that was worked on.
"""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from husk.builder.store.ahead import AheadTar, Below
from husk.builder.store.diffs import DiffStore
from husk.builder.store.file_actions import (
    NONE,
    Copy,
    FileAction,
    MakeDirectory,
    MakeFile,
    Owner,
    Selection,
    Symlink,
    can_be_told,
)
from husk.builder.store.workers.jobs import DifferenceJob, DigestForm, DigestJob, FilesJob
from husk.builder.store.workspaces import Workspace
from husk.errors import InvalidParameter, NotFound, SystemFault
from husk.storage.tar.entry import BLOCK
from husk.storage.workers.answers import Answer, Digests, Done, Failed, Invalid, Missing
from husk.storage.workers.handle import Worker, WorkerDied
from husk.storage.workers.jobs import WorkerJob
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.parts import Stack

_MOST_DIGESTS = 10_000
# Workers at a time, of all builds: a build may have a thousand operations that nothing keeps from beginning.
_AT_ONCE = max(4, 2 * (os.cpu_count() or 1))

TableOf = Callable[[str], Path | None]


class Trees:
    def __init__(
        self,
        diffs: DiffStore,
        nursery: Nursery,
        table_of: TableOf = lambda element: None,
        *,
        at_once: int = _AT_ONCE,
        start: Callable[[Nursery, WorkerJob], Awaitable[Worker]] = Worker.start,
    ) -> None:
        """`table_of` finds the table of a diff that came by a sync (`Mirrors.table`): its files are not read again.
        `at_once` workers are at work at most; each is made by `start`."""
        self._start = start
        self._diffs = diffs
        self._table_of = table_of
        self._nursery = nursery
        self._slots = asyncio.Semaphore(at_once)
        # What a stack holds never changes.
        self._digests: dict[tuple[str, bytes, DigestForm], str] = {}

    async def apply(
        self,
        actions: Sequence[FileAction],
        inputs: Sequence[str],
        layered: bool = False,
        ahead: AheadTar | None = None,
    ) -> list[str]:
        """Carry out all actions of a file operation; the stacks of its outputs.

        With `layered` they are going to be layers of an image: where it can be, they are packed while they are made, or
        `ahead` of it.
        NotFound where a file is missing, InvalidParameter for all else that is wrong with what was asked for.
        """
        results = list(inputs)
        outputs: dict[int, str] = {}
        made: list[str] = []
        try:
            for run in _runs(actions, len(inputs)):
                stack = await self._run(run, results, len(inputs), layered, ahead, made)
                # Nobody asks for what was in between.
                results += [""] * (len(run.actions) - 1) + [stack]
                if run.actions[-1].output != NONE:
                    outputs[run.actions[-1].output] = stack
            named = {element for stack in outputs.values() for element in stack.split()}
            await self._diffs.remove(diff for diff in made if diff not in named)
        except BaseException:
            await self._diffs.remove(made)
            raise
        return [outputs.get(number, "") for number in range(max(outputs, default=-1) + 1)]

    def ahead(self, action: FileAction, below: Below) -> AheadTar:
        """The tar of what a copy makes of files that still come, on top of the stack that `below` tells."""
        return AheadTar(self._diffs.make_blob_file, lambda time: self._lead(action, below, time))

    async def digest(self, stack: str, selections: Sequence[Selection], form: DigestForm = "") -> str:
        """One digest of all that the selections choose, in the form of our cache or in BuildKit's; NotFound where a
        path is missing.

        What was asked for before is remembered.
        """
        keys = [msgspec.msgpack.encode(selection) for selection in selections]
        found = {key: self._digests.get((stack, key, form)) for key in keys}
        asked = [key for key, digest in found.items() if digest is None]
        if asked:
            for key, digest in zip(asked, await self._digests_of(stack, asked, form), strict=True):
                found[key] = self._digests[stack, key, form] = digest
            while len(self._digests) > _MOST_DIGESTS:
                del self._digests[next(iter(self._digests))]
        digests = [found[key] or "" for key in keys]
        return "sha256:" + hashlib.sha256("\0".join(digests).encode()).hexdigest()

    async def _digests_of(self, stack: str, selections: list[bytes], form: DigestForm) -> list[str]:
        async with self._diffs.held(stack):
            job = DigestJob(*self._places(), self._readable(stack), str(self._table(stack) or ""), form)
            data = msgspec.msgpack.encode([msgspec.Raw(selection) for selection in selections])
            answer = await self._work(job, data)
        _check(answer)
        assert isinstance(answer, Digests)
        return answer.digests

    async def difference(self, lower: str, upper: str) -> str:
        """The stack of what makes the lower stack look like the upper one, where that is not just more of it."""
        async with self._diffs.held(upper), self._diffs.workspace(lower) as space:
            stacks = [Stack(self._diffs.lower(lower)), Stack(self._diffs.lower(upper)), _writable(space)]
            _check(await self._work(DifferenceJob(*self._places(), stacks)))
            return await space.keep()

    def _table(self, stack: str) -> Path | None:
        """Return the table of a stack that is the diff of a sync alone: of more than that it is not true."""
        return self._table_of(stack) if stack and " " not in stack else None

    def _readable(self, stack: str) -> Stack:
        # A sync makes nothing that means anything to overlayfs.
        table = self._table(stack)
        return Stack(self._diffs.lower(stack), plain=table is not None, table=str(table or ""))

    def _places(self) -> tuple[str, str]:
        return str(self._diffs.directories.view), str(self._diffs.directories.empty)

    async def _lead(self, action: FileAction, below: Below, time: int) -> bytes | None:
        """Return the beginning of a copy's tar: that of a copy of nothing, from a directory with this time."""
        stack = await below()
        if stack is None:
            return None
        async with self._diffs.workspace("") as nothing, self._diffs.workspace(stack) as space:
            os.utime(nothing.upper, ns=(time, time))
            stacks = [_writable(space), Stack([str(nothing.upper)], plain=True)]
            with self._diffs.blob_file(True) as blob_file:
                job = FilesJob(*self._places(), stacks, str(self._diffs.directories.path), blob_file)
                copy = structs.replace(action, input=0, second_input=1)
                done = await self._work(job, msgspec.msgpack.encode([copy]))
                if not isinstance(done, Done) or done.blob is None:
                    return None
                return (await asyncio.to_thread(Path(blob_file).read_bytes))[: -2 * BLOCK]

    async def _run(
        self,
        run: "_Run",
        results: list[str],
        count: int,
        layered: bool,
        ahead: AheadTar | None,
        made: list[str],
    ) -> str:
        """Carry out what needs one diff only: the new stack. `made` gets that diff as soon as it is kept."""
        first = run.actions[0].input
        below = "" if first == NONE else results[first]
        numbering = _Numbering(results, range(count + run.start, count + run.start + len(run.actions)))
        actions = [numbering.apply(action) for action in run.actions]
        async with (
            self._diffs.held(*numbering.stacks),
            self._diffs.workspace(below) as space,
            ahead.taken(numbering.stacks) if ahead is not None else contextlib.nullcontext() as packing,
        ):
            stacks = [_writable(space), *map(self._readable, numbering.stacks)]
            common = str(self._diffs.directories.path)
            with self._diffs.blob_file(layered and can_be_told(actions)) as blob_file:
                lead, blobs = packing.lead if packing else None, str(self._diffs.blob_directory)
                job = FilesJob(*self._places(), stacks, common, blob_file, lead, blobs)
                done = await self._work(job, msgspec.msgpack.encode(actions))
                _check(done)
                assert isinstance(done, Done)
                blob, file = done.blob, blob_file
                if packing and (blob_ahead := await packing.blob(done.heads)):
                    blob, file = blob_ahead, packing.path
                if blob is not None:
                    self._diffs.adopt(file, blob)
                diff = await space.keep(done.size, blob)
                made += [diff] if diff else []
        return " ".join(filter(None, [below, diff]))

    async def _work(self, job: WorkerJob, data: bytes = b"") -> Answer | None:
        """Let a worker do a job, in its turn; whoever has a worker waits for nobody else's."""
        async with self._slots:
            worker = await self._start(self._nursery, job)
            try:
                with contextlib.suppress(WorkerDied):  # its answer says why
                    await worker.write(data)
                return await worker.outcome()
            finally:
                worker.stop()


class _Run(Struct, frozen=True):
    """Actions that follow each other on one file system; `start` is the number of the first."""

    start: int
    actions: list[FileAction]


def _runs(actions: Sequence[FileAction], count: int) -> list[_Run]:
    """Group the actions into runs: a result in the middle of a run is needed by nobody but the next action."""
    asked: dict[int, int] = {}
    for action in actions:
        for number in {action.input, action.second_input, *_owner_inputs(action)}:
            asked[number] = asked.get(number, 0) + 1
    runs: list[_Run] = []
    for number, action in enumerate(actions):
        before = count + number - 1
        goes_on = number > 0 and action.input == before and asked[before] == 1 and actions[number - 1].output == NONE
        if goes_on and action.second_input != before:
            runs[-1].actions.append(action)
        else:
            runs.append(_Run(number, [action]))
    return runs


class _Numbering:
    """Gives the inputs of actions the numbers that they have in a job: 0 is what is worked on."""

    def __init__(self, results: list[str], worked_on: range) -> None:
        self._results = results
        self._worked_on = worked_on
        self._numbers: dict[int, int] = {}
        self.stacks: list[str] = []

    def apply(self, step: FileAction) -> FileAction:
        action = step.action
        if isinstance(action, Copy | MakeFile | MakeDirectory | Symlink):
            action = structs.replace(action, user=self._owner(action.user), group=self._owner(action.group))
        source = self._number(step.second_input) if isinstance(action, Copy) else NONE
        return structs.replace(step, action=action, input=0, second_input=source)

    def _owner(self, owner: Owner | None) -> Owner | None:
        return structs.replace(owner, input=self._number(owner.input)) if owner and owner.name else owner

    def _number(self, number: int) -> int:
        if number in self._worked_on:
            return 0
        if number not in self._numbers:
            # Without an input there is an empty file system.
            self.stacks.append("" if number == NONE else self._results[number])
            self._numbers[number] = len(self.stacks)
        return self._numbers[number]


def _owner_inputs(step: FileAction) -> set[int]:
    action = step.action
    if not isinstance(action, Copy | MakeFile | MakeDirectory | Symlink):
        return set()
    return {owner.input for owner in (action.user, action.group) if owner is not None and owner.name}


def _writable(space: Workspace) -> Stack:
    return Stack(space.lower, str(space.upper), str(space.work))


def _check(answer: Answer | None) -> None:
    match answer:
        case Missing(message):
            raise NotFound(message)
        case Invalid(message):
            raise InvalidParameter(message)
        case Failed(message):
            raise SystemFault(message)
        case None:
            raise SystemFault("the worker that works on a build's files died: see the daemon's log")
        case _:
            return
