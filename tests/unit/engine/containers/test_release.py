"""Giving back what a container holds, on doubles of those who hold it."""

from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from husk.aio.tasks import Tasks
from husk.engine.containers import states
from husk.engine.containers.index import Instance
from husk.engine.containers.release import CROWD, Releaser
from husk.engine.model.container_config import HostConfig, LogConfig
from husk.errors import SystemFault
from tests.support.but import but
from tests.unit.engine.records import container


class Host:
    """A host on which one container has run."""

    def __init__(self) -> None:
        self.bundle = True
        self.runtime = SimpleNamespace(
            forget_ended=Mock(return_value=True), has_ended=Mock(return_value=True), delete=AsyncMock()
        )
        self.networks = SimpleNamespace(disconnect=AsyncMock(), forget=Mock())
        self.stager = SimpleNamespace(unmount=AsyncMock())
        self.assembly = assembly = Mock()
        assembly.has_bundle.side_effect = lambda container_id: self.bundle
        assembly.discard_bundle.side_effect = self._discard
        runtimes = SimpleNamespace(of=lambda name: self.runtime)
        self.tasks = Tasks()
        self.releaser = Releaser(
            assembly, cast(Any, runtimes), cast(Any, self.networks), cast(Any, self.stager), self.tasks
        )
        self.instance = Instance(container("one"), Tasks())

    @property
    def held(self) -> bool:
        return states.holds(self.instance.life)

    @property
    def uncleared(self) -> bool:
        return states.is_uncleared(self.instance.life)

    def run(self, *, doomed: bool = False) -> None:
        """The container runs, and has a bundle."""
        self.bundle = True
        self.instance.life = states.Alive(cast(Any, Mock()), doomed=doomed)

    def _discard(self, container_id: str) -> None:
        self.bundle = False


@pytest.fixture
def host() -> Host:
    return Host()


async def test_one_that_has_ended_needs_no_runtime_and_is_released_once(host: Host) -> None:
    for _ in range(2):
        await host.releaser.release(host.instance)
    assert not host.bundle and not host.held
    host.runtime.delete.assert_not_awaited()
    host.networks.disconnect.assert_awaited_once()


async def test_one_that_is_still_at_work_is_ended_by_its_runtime(host: Host) -> None:
    host.runtime.forget_ended.return_value = False
    await host.releaser.release(host.instance)
    host.runtime.delete.assert_awaited_once_with(host.instance.id, force=True)
    assert not host.bundle and not host.held


async def test_what_fails_keeps_nothing_else_and_is_tried_again(host: Host) -> None:
    host.networks.disconnect.side_effect = SystemFault("the bridge is stuck")
    await host.releaser.release(host.instance)
    assert not host.bundle and host.held
    host.networks.disconnect.side_effect = None
    await host.releaser.release(host.instance)
    assert not host.held


async def test_a_copy_that_is_under_way_keeps_its_file_systems(host: Host) -> None:
    host.instance.root_users = 1
    await host.releaser.release(host.instance)
    host.stager.unmount.assert_not_awaited()
    assert host.held


def test_one_that_holds_nothing_is_forgotten_without_a_look(host: Host) -> None:
    host.releaser.forget(host.instance)
    host.networks.forget.assert_called_once_with(host.instance.draft)
    assert not host.held


def crowd(host: Host, others: int = CROWD) -> ExitStack:
    """So many are removed by force."""
    stack = ExitStack()
    for _ in range(others):
        stack.enter_context(host.releaser.removal())
    return stack


async def test_in_a_crowd_bundle_and_control_group_are_cleared_when_the_last_has_gone(host: Host) -> None:
    host.run(doomed=True)
    with crowd(host):
        await host.releaser.release(host.instance)
        host.networks.disconnect.assert_awaited_once()
        assert host.bundle and isinstance(host.instance.life, states.Uncleared)
        host.runtime.forget_ended.assert_not_called()
        assert host.releaser.clear_later(host.instance)
        assert host.bundle and not host.uncleared
        host.assembly.discard.assert_not_called()
    await host.tasks.join()
    assert not host.bundle
    host.assembly.clear_cgroup.assert_called_once()
    host.runtime.forget_ended.assert_called_once()
    host.assembly.discard.assert_called_once_with(host.instance.id)


@pytest.mark.parametrize(
    ("little", "log_config"),
    [
        (False, LogConfig()),
        (True, LogConfig(type="json-file", config={"max-size": "1g"})),
        (True, LogConfig(type="local")),
    ],
)
async def test_in_a_crowd_much_on_the_disk_goes_before_the_answer(
    host: Host, little: bool, log_config: LogConfig
) -> None:
    host.run(doomed=True)
    host.assembly.holds_little.return_value = little
    host.instance.believe(but(host.instance.record, host_config=HostConfig(log_config=log_config)))
    with crowd(host):
        await host.releaser.release(host.instance)
        assert not host.releaser.clear_later(host.instance)
    await host.tasks.join()
    assert not host.bundle
    host.assembly.discard.assert_not_called()


async def test_in_a_crowd_a_root_that_is_still_mounted_is_not_left_for_later(host: Host) -> None:
    host.run(doomed=True)
    host.assembly.root.return_value.unmount.side_effect = SystemFault("it is busy")
    with crowd(host):
        await host.releaser.release(host.instance)
        assert host.instance.life == states.Unsettled(uncleared=True)
        assert not host.releaser.clear_later(host.instance)
    await host.tasks.join()


async def test_in_a_crowd_what_it_has_on_the_disk_goes_though_its_control_group_stays(host: Host) -> None:
    host.run(doomed=True)
    host.assembly.clear_cgroup.side_effect = SystemFault("it is busy")
    with crowd(host):
        await host.releaser.release(host.instance)
        assert host.releaser.clear_later(host.instance)
    await host.tasks.join()
    host.assembly.discard.assert_called_once_with(host.instance.id)
    assert host.bundle, "the next daemon finds it"


async def test_in_a_crowd_one_that_is_still_at_work_is_ended_by_its_runtime(host: Host) -> None:
    host.run(doomed=True)
    host.runtime.has_ended.return_value = False
    with crowd(host):
        await host.releaser.release(host.instance)
    host.runtime.delete.assert_awaited_once_with(host.instance.id, force=True)
    assert not host.bundle and not host.uncleared and not host.held


async def test_what_was_left_is_cleared_before_a_start_and_at_the_end_of_the_daemon(host: Host) -> None:
    host.run(doomed=True)
    with crowd(host):
        await host.releaser.release(host.instance)
        await host.releaser.clear(host.instance)
        assert not host.bundle and not host.uncleared
        host.run(doomed=True)
        await host.releaser.release(host.instance)
        host.releaser.clear_later(host.instance)
        assert host.bundle
        await host.releaser.close()
        assert not host.bundle
    await host.tasks.join()


@pytest.mark.parametrize(
    ("others", "going", "config"),
    [
        (CROWD - 1, True, HostConfig()),
        (CROWD, False, HostConfig()),
        (CROWD, True, HostConfig(pid_mode="host")),
        (CROWD, True, HostConfig(cgroup_parent="/mine")),
    ],
)
async def test_nothing_is_left_for_later_else(host: Host, others: int, going: bool, config: HostConfig) -> None:
    host.run(doomed=going)
    host.instance.believe(but(host.instance.record, host_config=config))
    with crowd(host, others):
        await host.releaser.release(host.instance)
        assert not host.bundle and not host.uncleared


async def test_one_that_goes_for_good_may_lose_what_it_has_on_the_disk_at_once(host: Host) -> None:
    host.assembly.discard_little.return_value = True
    await host.releaser.release(host.instance)
    assert host.instance.life != states.DISCARDED
    host.run(doomed=True)
    await host.releaser.release(host.instance, for_good=True)
    assert host.instance.life == states.DISCARDED


async def test_nothing_is_discarded_while_something_of_it_is_held(host: Host) -> None:
    host.assembly.root.return_value.unmount.side_effect = SystemFault("it is busy")
    await host.releaser.release(host.instance, for_good=True)
    assert host.instance.life != states.DISCARDED and host.held
    host.assembly.discard_little.assert_not_called()
