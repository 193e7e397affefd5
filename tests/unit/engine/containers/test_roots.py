"""Whoever needs a root while a block lasts leaves none mounted, however the block ends."""

import asyncio
import contextlib
import threading
from typing import Any, cast

import pytest

from husk.engine.containers.roots import Roots


class SlowRoot:
    """A root whose mounting takes until it is told to go on, as on a busy host."""

    def __init__(self) -> None:
        self.mounted = False
        self.merged = "/merged"
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def mount(self, _: object) -> None:
        self.begun.set()
        assert self.go_on.wait(20)
        self.mounted = True

    def unmount(self) -> None:
        self.mounted = False


class Known:
    def __init__(self, root: SlowRoot) -> None:
        self.slow = root
        self.mount_points_layer = "/points"
        self.id = "c" * 64
        self.lock = asyncio.Lock()
        self.root_users = 0
        self.staged = False
        self.record: Any = self
        self.state: Any = self
        self.status = "exited"
        self.layers: list[str] = []

    def root(self, _: str) -> SlowRoot:
        return self.slow

    def present(self, _: object) -> bool:
        return True

    def lower(self, _: object) -> list[str]:
        return []

    async def mount(self, _: object) -> None:
        self.staged = True

    async def unmount(self, _: object) -> None:
        self.staged = False


@pytest.fixture
def root() -> SlowRoot:
    return SlowRoot()


async def test_a_cancelled_mount_is_unmounted_after_it_is_done(root: SlowRoot):
    known = Known(root)
    roots = Roots(*cast(Any, (known, known, known, known)))

    async def use() -> None:
        async with roots.mounted(cast(Any, known)):
            raise AssertionError("it was cancelled before")

    using = asyncio.get_running_loop().create_task(use())
    assert await asyncio.to_thread(root.begun.wait, 20)
    for _ in range(3):
        using.cancel()
        await asyncio.sleep(0)
    assert known.lock.locked(), "nobody else may come in between"
    root.go_on.set()
    with contextlib.suppress(asyncio.CancelledError):
        await using
    assert using.cancelled()
    assert (root.mounted, known.staged, known.root_users, known.lock.locked()) == (False, False, 0, False)


async def test_it_is_mounted_while_the_block_lasts(root: SlowRoot):
    root.go_on.set()
    known = Known(root)
    roots = Roots(*cast(Any, (known, known, known, known)))
    async with roots.mounted(cast(Any, known)):
        assert root.mounted and known.staged
    assert not root.mounted and not known.staged
