"""The statements about a result that goes out as files: for each statement a file beside them, about each of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from husk.builder.exporters.documents import STATEMENT
from husk.builder.exporters.parts import PlatformPart
from husk.builder.graph import stacks
from husk.builder.jobs.results import Predicate
from husk.builder.store.file_actions import NONE, FileAction, MakeFile
from husk.errors import InvalidParameter

_MODE = 0o600


class ListedFile(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def digest(self) -> str: ...


class Lists(Protocol):
    """The lists of files that stacks have: `husk.builder.store.stack_lists`."""

    async def files(self, stack: str, *, digests: bool = False) -> Sequence[ListedFile]: ...


class Trees(Protocol):
    """Works on the files of stacks: `husk.builder.store.trees`."""

    async def apply(self, actions: Sequence[FileAction], inputs: Sequence[str]) -> list[str]: ...


class StatedFiles:
    def __init__(self, lists: Lists, trees: Trees, forget: Callable[[str], Awaitable[None]]) -> None:
        """`forget` removes a stack that nobody needs any more."""
        self._lists = lists
        self._trees = trees
        self._forget = forget

    @asynccontextmanager
    async def beside(self, part: PlatformPart, name: Callable[[Predicate], str]) -> AsyncIterator[str]:
        """The files of a part and those of its statements, as a stack; `name` says what each is called."""
        stack = await part.stack()
        wanted = [one for one in part.predicates if not one.inline_only]
        if not wanted:
            yield stack
            return
        files = statements(wanted, await self._lists.files(stack, digests=True), name)
        (made,) = await self._trees.apply(_writing(files), [stack])
        try:
            yield made
        finally:
            await asyncio.shield(_removed(self._forget, stack, made))

    async def check_apart(self, parts: Mapping[str, str]) -> None:
        """InvalidParameter if two platforms, by their ids, have a file of one path in their stacks."""
        owners: dict[str, str] = {}
        for id, stack in parts.items():
            for file in await self._lists.files(stack):
                if (owner := owners.setdefault(file.path, id)) != id:
                    told = f"cannot overwrite {file.path} from {owner} with {id} when split option is disabled"
                    raise InvalidParameter(told)


async def _removed(forget: Callable[[str], Awaitable[None]], stack: str, made: str) -> None:
    if new := stacks.above(stack, made):
        await forget(new)


def statements(
    predicates: Sequence[Predicate], files: Sequence[ListedFile], name: Callable[[Predicate], str]
) -> dict[str, bytes]:
    """Statements of in-toto as files, by their names."""
    subjects = [_subject(file) for file in files if file.digest]
    found: dict[str, bytes] = {}
    for predicate in predicates:
        if (called := name(predicate)) in found:
            raise InvalidParameter(f"duplicate attestation path name {called}")
        document = {
            "_type": STATEMENT,
            "predicateType": predicate.type,
            "subject": subjects,
            "predicate": msgspec.Raw(predicate.body),
        }
        found[called] = msgspec.json.format(msgspec.json.encode(document), indent=2)
    return found


def _subject(file: ListedFile) -> dict[str, object]:
    algorithm, _, value = file.digest.partition(":")
    path = file.path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return {"name": path, "digest": {algorithm: value}}


def _writing(files: Mapping[str, bytes]) -> list[FileAction]:
    """Each file is written into what the one before has left."""
    last = len(files) - 1
    return [
        FileAction(
            action=MakeFile(path=f"/{name}", mode=_MODE, data=data),
            input=number,
            output=0 if number == last else NONE,
        )
        for number, (name, data) in enumerate(files.items())
    ]
