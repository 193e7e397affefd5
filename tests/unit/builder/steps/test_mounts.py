"""Needs of a step's mounts, and their results."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from husk.builder.graph.operations import (
    CacheMount,
    Exec,
    ExecMount,
    ProcessSpec,
    SecretMount,
    SecretVariable,
    SshMount,
    TmpfsMount,
)
from husk.builder.steps.cache_mounts import WantedCache
from husk.builder.steps.mounts import Mounts, Prepared
from husk.errors import InvalidParameter
from husk.runtime.assembly.step import Directory, Layered, MemoryFiles, Secret, Socket, StepMount
from tests.support.steps import FakeSession

ROOT = ExecMount(target="/", input=0, output=0)


class FakePlace:
    def __init__(self, stack: str, kept: str) -> None:
        self.lower = stack.split()[::-1]
        self.upper, self.work = Path("/upper"), Path("/work")
        self._kept = kept

    async def keep(self, *, layered: bool = False) -> str:
        return self._kept


class FakeDiffs:
    def __init__(self) -> None:
        self.open: list[str] = []
        self.kept = "diff:new"

    def lower(self, stack: str) -> Sequence[str]:
        return stack.split()[::-1]

    @asynccontextmanager
    async def held(self, *stacks: str) -> AsyncIterator[None]:
        self.open += stacks
        try:
            yield
        finally:
            for stack in stacks:
                self.open.remove(stack)

    @asynccontextmanager
    async def workspace(self, stack: str) -> AsyncIterator[FakePlace]:
        self.open.append(stack)
        try:
            yield FakePlace(stack, self.kept)
        finally:
            self.open.remove(stack)


class FakeCaches:
    def __init__(self) -> None:
        self.wanted: list[WantedCache] = []

    @asynccontextmanager
    async def taken(self, wanted: Sequence[WantedCache]) -> AsyncIterator[list[Path]]:
        self.wanted += wanted
        yield [Path("/caches", one.id) for one in wanted]


@pytest.fixture
def diffs() -> FakeDiffs:
    return FakeDiffs()


@pytest.fixture
def caches() -> FakeCaches:
    return FakeCaches()


async def prepared(
    diffs: FakeDiffs,
    caches: FakeCaches,
    *mounts: ExecMount,
    inputs: Sequence[str] = ("a b", "c"),
    session: FakeSession | None = None,
    **body: object,
) -> tuple[Prepared, list[str]]:
    words: dict[str, object] = {"process": ProcessSpec(args=["x"]), **body}
    exec = Exec(mounts=[ROOT, *mounts], **words)  # type: ignore[arg-type]
    async with Mounts(diffs, caches).prepared(exec, inputs, session) as found:  # type: ignore[arg-type]
        outputs = await found.outputs()
    assert diffs.open == []
    return found, outputs


async def test_the_root_has_a_workspace(diffs: FakeDiffs, caches: FakeCaches) -> None:
    found, outputs = await prepared(diffs, caches)
    assert found.root == Layered(("b", "a"), "/upper", "/work")
    assert outputs == ["a b diff:new"]
    diffs.kept = ""
    assert (await prepared(diffs, caches))[1] == ["a b"]


async def test_stacks(diffs: FakeDiffs, caches: FakeCaches) -> None:
    read_only = ExecMount(target="/x/../y", input=1, selector="/s", read_only=True)
    kept = ExecMount(target="/out", output=1)
    found, outputs = await prepared(diffs, caches, read_only, kept)
    assert found.mounts == [
        StepMount(target="/y", source=Layered(("c",)), selector="/s", read_only=True),
        StepMount(target="/out", source=Layered((), "/upper", "/work")),
    ]
    assert outputs == ["a b diff:new", "diff:new"]
    unchanged = ExecMount(target="/y", input=1, output=1, read_only=True)
    assert (await prepared(diffs, caches, unchanged))[1] == ["a b diff:new", "c"]


async def test_caches_and_memory(diffs: FakeDiffs, caches: FakeCaches) -> None:
    cache = ExecMount(target="/cache", kind=CacheMount("id", "locked"), input=1, selector="/s")
    found, _ = await prepared(diffs, caches, cache, ExecMount(target="/t", kind=TmpfsMount(5)))
    assert found.mounts == [
        StepMount(target="/cache", source=Directory("/caches/id")),
        StepMount(target="/t", source=MemoryFiles(5)),
    ]
    description = "cached mount /cache from exec x"
    wanted = WantedCache(id="id", sharing="locked", source="c", lower=["c"], selector="/s", description=description)
    assert caches.wanted == [wanted]


async def test_secrets_and_agents(diffs: FakeDiffs, caches: FakeCaches) -> None:
    session = FakeSession({"s": b"hush"}, ["default"])
    found, _ = await prepared(
        diffs,
        caches,
        ExecMount(target="/s", kind=SecretMount("s", 1, 2, 0o444)),
        ExecMount(target="/no", kind=SecretMount("no", optional=True)),
        ExecMount(target="/agent", kind=SshMount("default", 3, 4, 0o660)),
        ExecMount(target="/none", kind=SshMount("none", optional=True)),
        session=session,
        secret_env=[SecretVariable("s", "S"), SecretVariable("no", "N", optional=True)],
    )
    assert found.mounts == [
        StepMount(target="/s", source=Secret(b"hush", 1, 2, 0o444), read_only=True),
        StepMount(target="/agent", source=Socket(3, 4, 0o660)),
    ]
    assert (found.env, found.agents) == (["S=hush", "N=", "SSH_AUTH_SOCK=/agent"], ["default"])
    assert "hush" not in repr(found.mounts)


@pytest.mark.parametrize("session", [None, FakeSession()])
async def test_what_the_client_does_not_have(diffs: FakeDiffs, caches: FakeCaches, session: FakeSession | None) -> None:
    with pytest.raises(InvalidParameter, match="secret x: not found"):
        await prepared(diffs, caches, ExecMount(target="/s", kind=SecretMount("x")), session=session)
    with pytest.raises(InvalidParameter, match="secret x: not found"):
        await prepared(diffs, caches, session=session, secret_env=[SecretVariable("x", "X")])
    with pytest.raises(InvalidParameter, match='no SSH key "x" forwarded'):
        await prepared(diffs, caches, ExecMount(target="/s", kind=SshMount("x")), session=session)
    assert diffs.open == []


@pytest.mark.parametrize(
    "mount",
    [
        ExecMount(target="/proc/x"),
        ExecMount(target="/x", input=5),
        ExecMount(target="/x", output=3),
        ExecMount(target="/x", kind=TmpfsMount(), output=1),
    ],
)
async def test_what_cannot_be(diffs: FakeDiffs, caches: FakeCaches, mount: ExecMount) -> None:
    with pytest.raises(InvalidParameter):
        await prepared(diffs, caches, mount)


async def test_a_step_without_a_root(diffs: FakeDiffs, caches: FakeCaches) -> None:
    exec = Exec(process=ProcessSpec(args=["x"]), mounts=[ExecMount(target="/x", input=0)])
    with pytest.raises(InvalidParameter):
        async with Mounts(diffs, caches).prepared(exec, ["a"], None):  # type: ignore[arg-type]
            pass
