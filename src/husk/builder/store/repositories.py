"""Repositories of git as sources of builds: what their names stand for now, and the files of a commit.

git is run by a worker (`workers.git`), which sees nothing of the host but what it needs.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, structs

from husk.aio.listening import KEEP_FILE
from husk.aio.tasks import Tasks
from husk.builder.store.diffs import DiffStore
from husk.builder.store.space import room_left
from husk.builder.store.workers.jobs import GitJob
from husk.config import NO_PROXIES, Proxies
from husk.errors import InvalidParameter, SystemFault
from husk.storage.workers.answers import Answer, Failed, FileContent, Invalid
from husk.storage.workers.handle import Worker
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.parts import Access

_AGENT = "agent"
_LEAST_MEMORY = 1 << 30

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[object, object, None]]
"""Answers whoever connects to an SSH agent."""


class Repository(Struct, frozen=True, kw_only=True):
    """The address of a repository, and the access to it. `header` (Authorization) is for addresses below `scope`."""

    remote: str
    header: str = ""
    scope: str = ""
    known_hosts: str = ""
    agent: Serve | None = None


class WantedCommit(Struct, frozen=True, kw_only=True):
    """A commit that is wanted of a repository, or a tag, of which the server said that it is the commit `said`.

    `reference` is what it was found by, if it was.
    """

    commit: str
    reference: str = ""
    said: str = ""
    directory: str = ""
    keep: bool = False
    submodules: bool = True
    time_of_commit: bool = False


class CheckedOut(Struct, frozen=True):
    """The stack with the files of a commit."""

    stack: str
    commit: str


class Repositories:
    def __init__(self, diffs: DiffStore, nursery: Nursery, proxies: Proxies = NO_PROXIES) -> None:
        self._diffs = diffs
        self._nursery = nursery
        self._environment = proxy_environment(proxies, os.environ)

    async def names(self, repository: Repository, names: Sequence[str]) -> str:
        """The lines of `git ls-remote` for these names; for HEAD alone with the branch that it is."""
        async with self._diffs.workspace("") as space, self._reached(repository, space.work) as access:
            job = GitJob(str(self._diffs.directories.view), str(space.work), access, list(names))
            answer = await Worker.ask(self._nursery, job)
        if not isinstance(answer, FileContent):
            raise _failure(answer)
        return answer.data.decode("utf-8", "replace")

    async def check_out(self, repository: Repository, wanted: WantedCommit) -> CheckedOut:
        """Make a stack of the files of a commit. They are root's. A tag that is not what was said of it is refused."""
        async with self._diffs.workspace("") as space:
            async with self._reached(repository, space.work) as access:
                job = GitJob(
                    view=str(self._diffs.directories.view),
                    work=str(space.work),
                    access=access,
                    tree=str(space.upper),
                    limit=await asyncio.to_thread(room_left, space.upper),
                    memory=memory_of_git(),
                    **structs.asdict(wanted),
                )
                answer = await Worker.ask(self._nursery, job)
            if not isinstance(answer, FileContent):
                raise _failure(answer)
            return CheckedOut(await space.keep(), answer.data.decode())

    @contextlib.asynccontextmanager
    async def _reached(self, repository: Repository, work: Path) -> AsyncIterator[Access]:
        """Give a worker's access to the repository while the block lasts; an agent is a socket in its directory."""
        access = Access(
            remote=repository.remote,
            header=repository.header,
            scope=repository.scope,
            known_hosts=repository.known_hosts,
            agent=_AGENT if repository.agent else "",
            environment=self._environment,
        )
        if repository.agent is None:
            yield access
            return
        tasks = Tasks()
        serve = repository.agent
        listener = await asyncio.to_thread(_listen, work)
        server = await asyncio.start_unix_server(
            lambda reader, writer: tasks.spawn(serve(reader, writer), "serve an SSH agent"), sock=listener, **KEEP_FILE
        )
        try:
            yield access
        finally:
            server.close()
            await tasks.cancel_all()
            await asyncio.to_thread((work / _AGENT).unlink, missing_ok=True)


def memory_of_git() -> int:
    """The bytes that one process of git may have: a quarter of this host's."""
    return max(_LEAST_MEMORY, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4)


def _listen(directory: Path) -> socket.socket:
    """By the directory's descriptor: its path may be longer than an address of a socket."""
    place = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(f"/proc/self/fd/{place}/{_AGENT}")
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(place)
    return listener


def proxy_environment(proxies: Proxies, around: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tell programs of proxies: by the daemon's settings, else by its own environment."""
    told = {"http_proxy": proxies.http_proxy, "https_proxy": proxies.https_proxy, "no_proxy": proxies.no_proxy}
    found = {name: value or around.get(name) or around.get(name.upper(), "") for name, value in told.items()}
    return {name: value for name, value in found.items() if value}


def _failure(answer: Answer | None) -> InvalidParameter | SystemFault:
    match answer:
        case Invalid(message):
            return InvalidParameter(message)
        case Failed(message):
            return SystemFault(message)
        case _:
            return SystemFault("the worker that runs git died: see the daemon's log")
