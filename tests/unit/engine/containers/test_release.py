"""Giving back what a container holds, on doubles of those who hold it."""

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from husk.engine.containers.index import Instance
from husk.engine.containers.release import Releaser
from husk.errors import SystemFault
from husk.tasks import Tasks
from tests.unit.engine.records import container


class Host:
    """A host on which one container has run."""

    def __init__(self) -> None:
        self.bundle = True
        self.runtime = SimpleNamespace(forget_ended=Mock(return_value=True), delete=AsyncMock())
        self.networks = SimpleNamespace(disconnect=AsyncMock(), forget=Mock())
        self.stager = SimpleNamespace(unmount=AsyncMock())
        assembly = Mock()
        assembly.has_bundle.side_effect = lambda container_id: self.bundle
        assembly.discard_bundle.side_effect = self._discard
        runtimes = SimpleNamespace(of=lambda name: self.runtime)
        self.releaser = Releaser(assembly, cast(Any, runtimes), cast(Any, self.networks), cast(Any, self.stager))
        self.instance = Instance(container("one"), Tasks())

    def _discard(self, container_id: str) -> None:
        self.bundle = False


@pytest.fixture
def host() -> Host:
    return Host()


async def test_one_that_has_ended_needs_no_runtime_and_is_released_once(host: Host) -> None:
    for _ in range(2):
        await host.releaser.release(host.instance)
    assert not host.bundle and not host.instance.holds
    host.runtime.delete.assert_not_awaited()
    host.networks.disconnect.assert_awaited_once()


async def test_one_that_is_still_at_work_is_ended_by_its_runtime(host: Host) -> None:
    host.runtime.forget_ended.return_value = False
    await host.releaser.release(host.instance)
    host.runtime.delete.assert_awaited_once_with(host.instance.id, force=True)
    assert not host.bundle and not host.instance.holds


async def test_what_fails_keeps_nothing_else_and_is_tried_again(host: Host) -> None:
    host.networks.disconnect.side_effect = SystemFault("the bridge is stuck")
    await host.releaser.release(host.instance)
    assert not host.bundle and host.instance.holds
    host.networks.disconnect.side_effect = None
    await host.releaser.release(host.instance)
    assert not host.instance.holds


async def test_a_copy_that_is_under_way_keeps_its_file_systems(host: Host) -> None:
    host.instance.root_users = 1
    await host.releaser.release(host.instance)
    host.stager.unmount.assert_not_awaited()
    assert host.instance.holds


def test_one_that_holds_nothing_is_forgotten_without_a_look(host: Host) -> None:
    host.releaser.forget(host.instance)
    host.networks.forget.assert_called_once_with(host.instance.record)
    assert not host.instance.holds
