"""The opening of an engine: how the host is left when that fails, or ends."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.aio.tasks import Tasks
from husk.config import Config
from husk.engine.networks.service import Networks
from husk.engine.opening import _leave_host
from husk.errors import SystemFault
from tests.unit.engine.records import container


class FakeIndex(list[Any]):
    aside: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("status", "aside", "leaves"),
    [("exited", (), True), ("running", (), False), ("paused", (), False), ("exited", ("odd",), False)],
)
async def test_the_host_is_left_when_no_container_needs_it(
    monkeypatch: pytest.MonkeyPatch, status: Any, aside: tuple[str, ...], leaves: bool
) -> None:
    index = FakeIndex([SimpleNamespace(record=container(status=status))])
    index.aside = frozenset(aside)
    done: list[object] = []

    async def close(remove: bool) -> None:
        done.append(remove)

    monkeypatch.setattr("husk.runtime.assembly.cgroup.remove", done.append)
    config = Config(data_root=Path("/d"))

    async def opened() -> Networks:
        return cast(Networks, SimpleNamespace(close=close))

    await _leave_host(config, Tasks().spawn(opened(), "open networks"), cast(Any, index))
    assert done == ([True, config.cgroup_parent] if leaves else [False])


async def test_networks_that_could_not_be_opened_are_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused() -> Networks:
        raise SystemFault("no bridges here")

    done: list[object] = []
    monkeypatch.setattr("husk.runtime.assembly.cgroup.remove", done.append)
    opening = Tasks().spawn(refused(), "open networks", awaited=True)
    await _leave_host(Config(data_root=Path("/d")), opening, cast(Any, FakeIndex([])))
    assert done == [] and isinstance(opening.exception(), SystemFault)
