"""The mounts of a step, and the file systems that come out of it.

`Mounts.prepared` takes all that a step's mounts need: workspaces of stacks, caches, secrets. The first mount is the
root. A stack that a step may write to has a workspace: what is written there is kept as an output if the step asks for
one and ends well, and thrown away otherwise.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from husk.builder.graph import stacks
from husk.builder.graph.operations import (
    BindMount,
    CacheMount,
    Exec,
    ExecMount,
    SecretMount,
    SecretVariable,
    SshMount,
    TmpfsMount,
)
from husk.builder.solver.sessions import Session
from husk.builder.steps.cache_mounts import CacheMounts, WantedCache
from husk.builder.store.file_actions import NONE
from husk.errors import InvalidParameter, NotFound
from husk.runtime.assembly.step import Directory, Layered, MemoryFiles, Secret, Socket, StepMount, check_target


class Workspace(Protocol):
    """A place to change a stack in: what is written is in `upper`. `lower` is the stack, topmost first."""

    @property
    def lower(self) -> Sequence[str]: ...

    @property
    def upper(self) -> Path: ...

    @property
    def work(self) -> Path: ...

    async def keep(self, *, layered: bool = False) -> str:
        """The element for what was written, to put on the stack; empty if there is nothing to put there.

        With `layered` it is going to be a layer of an image.
        """
        ...


class Diffs(Protocol):
    """`husk.builder.store`'s stacks."""

    def workspace(self, stack: str) -> AbstractAsyncContextManager[Workspace]: ...

    def lower(self, stack: str) -> Sequence[str]: ...

    async def remove(self, elements: Iterable[str]) -> None: ...

    def held(self, *stacks: str) -> AbstractAsyncContextManager[None]:
        """Their files stay where they are while the block lasts."""
        ...


class Prepared(Struct, kw_only=True):
    """The mounts and variables of a step that is going to run."""

    root: Layered
    mounts: list[StepMount]
    env: list[str]
    agents: list[str]
    """The ids of the SSH agents behind the mounts that are sockets, in their order."""
    kept: dict[int, tuple[str, Workspace | None]]
    """By the numbers of outputs: the stack that is mounted, and where changes of it are."""
    made: list[str] = []
    """The diffs that were made of changes."""

    async def outputs(self, *, layered: bool = False) -> list[str]:
        found = []
        for number in sorted(self.kept):
            stack, workspace = self.kept[number]
            if workspace is not None:
                diff = await workspace.keep(layered=layered)
                self.made += [diff] if diff else []
                stack = stacks.joined(stack, diff)
            found.append(stack)
        return found


class Mounts:
    def __init__(self, diffs: Diffs, caches: CacheMounts) -> None:
        self._diffs = diffs
        self._caches = caches

    def begin_anew(self, caches: Mapping[str, bool]) -> None:
        """Let steps from now on begin with nothing in these caches."""
        self._caches.begin_anew(caches)

    async def drop(self, diffs: Collection[str]) -> None:
        """Forget what was made of changes and nobody gets."""
        await self._diffs.remove(diffs)

    @asynccontextmanager
    async def prepared(self, body: Exec, inputs: Sequence[str], session: Session | None) -> AsyncIterator[Prepared]:
        """Everything is there while the block lasts."""
        if not body.mounts or body.mounts[0].target != "/":
            raise InvalidParameter("a process of a build has no root to run in")
        check_outputs(body)
        client = _Client(session)
        env = await variables(session, body.secret_env)
        mounts: list[StepMount] = []
        agents: list[str] = []
        kept: dict[int, tuple[str, Workspace | None]] = {}
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._diffs.held(*inputs))
            wanted = {number: self._wanted(one, inputs, body) for number, one in enumerate(body.mounts) if _caches(one)}
            directories = await stack.enter_async_context(self._caches.taken(list(wanted.values())))
            caches = dict(zip(wanted, directories, strict=True))
            root = await self._layered(body.mounts[0], inputs, stack, kept, root=True)
            for number, one in list(enumerate(body.mounts))[1:]:
                source: Layered | Directory | MemoryFiles | Secret | Socket
                match one.kind:
                    case CacheMount():
                        source = Directory(str(caches[number]))
                    case TmpfsMount():
                        source = MemoryFiles(one.kind.size)
                    case SecretMount():
                        data = await client.secret(one.kind.id, optional=one.kind.optional)
                        if data is None:
                            continue
                        source = Secret(data, one.kind.uid, one.kind.gid, one.kind.mode)
                    case SshMount():
                        if not await client.has_agent(one.kind):
                            continue
                        agents.append(one.kind.id)
                        if len(agents) == 1 and not any(
                            entry.startswith("SSH_AUTH_SOCK=") for entry in body.process.env
                        ):
                            env.append(f"SSH_AUTH_SOCK={one.target}")
                        source = Socket(one.kind.uid, one.kind.gid, one.kind.mode)
                    case BindMount():
                        source = await self._layered(one, inputs, stack, kept)
                mounts.append(
                    StepMount(
                        target=check_target(one.target),
                        source=source,
                        selector=one.selector if isinstance(one.kind, BindMount) else "",
                        read_only=one.read_only or isinstance(one.kind, SecretMount),
                    )
                )
            yield Prepared(root=root, mounts=mounts, env=env, agents=agents, kept=kept)

    async def _layered(
        self,
        one: ExecMount,
        inputs: Sequence[str],
        stack: AsyncExitStack,
        kept: dict[int, tuple[str, Workspace | None]],
        root: bool = False,
    ) -> Layered:
        below = _input(one, inputs)
        # A root has something to write to in any case: places for mounts may be missing.
        workspace = None
        if root or not one.read_only:
            workspace = await stack.enter_async_context(self._diffs.workspace(below))
        if one.output != NONE:
            kept[one.output] = (below, None if one.read_only else workspace)
        if workspace is None:
            return Layered(tuple(self._diffs.lower(below)))
        return Layered(tuple(workspace.lower), str(workspace.upper), str(workspace.work))

    def _wanted(self, one: ExecMount, inputs: Sequence[str], body: Exec) -> WantedCache:
        assert isinstance(one.kind, CacheMount)
        source = _input(one, inputs)
        return WantedCache(
            id=one.kind.id,
            sharing=one.kind.sharing,
            source=source,
            lower=self._diffs.lower(source) if source else (),
            selector=one.selector,
            description=f"cached mount {one.target} from exec {' '.join(body.process.args)}",
        )


def check_outputs(body: Exec) -> None:
    """Outputs are numbered from 0 on, each once."""
    numbers = sorted(one.output for one in body.mounts if one.output != NONE)
    if numbers != list(range(len(numbers))):
        raise InvalidParameter(f"the outputs of a process are numbered {numbers}")
    for one in body.mounts:
        if one.output != NONE and not isinstance(one.kind, BindMount):
            raise InvalidParameter(f"nothing of what is mounted on {one.target} can be kept")


def _caches(one: ExecMount) -> bool:
    return isinstance(one.kind, CacheMount)


def _input(one: ExecMount, inputs: Sequence[str]) -> str:
    if one.input == NONE:
        return ""
    if not 0 <= one.input < len(inputs):
        raise InvalidParameter(f"the mount on {one.target} has no input {one.input}")
    return inputs[one.input]


async def variables(session: Session | None, wanted: Sequence[SecretVariable]) -> list[str]:
    """Secrets as a process gets them in its environment."""
    client = _Client(session)
    return [f"{one.name}={(await client.variable(one)).decode(errors='surrogateescape')}" for one in wanted]


class _Client:
    """Asks the client for what a step may have of it."""

    def __init__(self, session: Session | None) -> None:
        self._session = session

    async def variable(self, one: SecretVariable) -> bytes:
        return await self.secret(one.id, optional=one.optional) or b""

    async def secret(self, id: str, *, optional: bool) -> bytes | None:
        try:
            if self._session is None:
                raise NotFound("the build has no session")
            return await self._session.secret(id)
        except NotFound:
            if optional:
                return None
            raise InvalidParameter(f"secret {id}: not found") from None

    async def has_agent(self, wanted: SshMount) -> bool:
        try:
            if self._session is None:
                raise NotFound("the build has no session")
            await self._session.check_agent(wanted.id)
        except NotFound:
            if wanted.optional:
                return False
            raise InvalidParameter(f'no SSH key "{wanted.id}" forwarded from the client') from None
        return True
