"""A newer decision cuts the work for a task off between its steps, never in the middle of one."""

import asyncio
import errno
import threading
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from husk.engine.containers.create import CreatedContainer
from husk.engine.containers.service import Containers
from husk.engine.model.container import TASK_LABEL, Status
from husk.engine.model.container_config import ContainerConfig
from husk.errors import Conflict, NotFound
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import ContainerSpec, Service, ServiceSpec, Task, TaskSpec, TaskStatus
from husk.swarm.node import runner as runner_module
from husk.swarm.node.runner import TaskRunner
from husk.swarm.spec.containers import container_config
from tests.support.but import but
from tests.support.waiting import until_async
from tests.unit.engine.records import container


class SlowContainers:
    """Containers whose making and starting takes until `go_on`."""

    def __init__(self, slow: str) -> None:
        self.slow = slow
        self.log: list[str] = []
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def _step(self, name: str) -> None:
        if name == self.slow:
            self.reached.set()
            await self.go_on.wait()
        self.log.append(name)

    async def create(self, *request: object) -> CreatedContainer:
        await self._step("create")
        return CreatedContainer(container(), [])

    async def start(self, reference: str) -> None:
        await self._step("start")

    async def stop(self, *request: object) -> None:
        await self._step("stop")

    async def remove(self, *request: object) -> None:
        raise NotFound("No such container")

    def find(self, reference: str) -> Any:
        raise NotFound("No such container")


class FakeAssignments(AsyncMock):
    """Nobody listens."""

    node = NodeFacts(id="n1", hostname="alpha")

    def __init__(self) -> None:
        super().__init__()
        self.there: dict[str, Task] = {}
        self.task = self.there.get
        self.own: list[Task] = []
        self.tasks = lambda: self.own

    @property
    def status(self) -> TaskStatus:
        """The last word on the task."""
        return self.there["t1"].status

    async def report(self, task: Task, status: TaskStatus) -> None:
        self.there[task.id] = but(task, status=status)


def made(containers: Containers, assignments: FakeAssignments | None = None) -> tuple[TaskRunner, Service, Task]:
    runner = TaskRunner(
        assignments=assignments or FakeAssignments(), containers=containers, images=Mock(),
        deliveries=AsyncMock(deliver=AsyncMock(return_value=[])), again=0.01,
    )  # fmt: skip
    template = TaskSpec(container_spec=ContainerSpec(image="busybox"))
    spec = ServiceSpec(name="web", task_template=template)
    service = Service(id="s1", version=1, created_at="", updated_at="", spec=spec)
    task = Task(
        id="t1", version=1, created_at="", created_ns=0, updated_at="", service_id="s1", service_name="web", slot=1,
        node_id="n1", spec=template, spec_version=1, status=TaskStatus(timestamp="", state="pending"),
    )  # fmt: skip
    return runner, service, task


async def launched(runner: TaskRunner, task: Task, service: Service) -> None:
    runner.launch(task, service)
    await until_async(lambda: not runner.busy(task), "it is over")


@pytest.mark.parametrize(("step", "done"), [("create", ["create", "stop"]), ("start", ["create", "start", "stop"])])
async def test_a_container_is_made_and_started_to_the_end_before_it_is_stopped(step: str, done: list[str]) -> None:
    containers = SlowContainers(step)
    assignments = FakeAssignments()
    runner, service, task = made(cast(Containers, containers), assignments)
    runner.launch(task, service)
    await containers.reached.wait()
    runner.end(task)
    await asyncio.sleep(0)
    containers.go_on.set()
    async with asyncio.timeout(10):
        while runner.busy(task):
            await asyncio.sleep(0)
    assert containers.log == done
    assert assignments.status.state == "shutdown"
    await runner.close()


@pytest.mark.parametrize("steps", range(4))
async def test_a_second_decision_waits_for_what_the_first_cut_off(steps: int) -> None:
    """A service that is removed, and then its swarm: its container may still be made meanwhile."""
    containers = SlowContainers("create")
    runner, service, task = made(cast(Containers, containers))
    runner.launch(task, service)
    await containers.reached.wait()
    runner.forget(task)
    for _ in range(steps):
        await asyncio.sleep(0)
    runner.forget(task)
    for _ in range(10):
        await asyncio.sleep(0)
    assert containers.log == [], "nothing is stopped before it is there"
    containers.go_on.set()
    async with asyncio.timeout(10):
        while runner.busy(task):
            await asyncio.sleep(0)
    assert containers.log == ["create", "stop"]
    await runner.close()


async def test_a_template_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, read = [], container_config

    def reading(*given: Any) -> Any:
        threads.append(threading.get_ident())
        return read(*given)

    monkeypatch.setattr(runner_module, "container_config", reading)
    runner, service, task = made(cast(Containers, SlowContainers("")))
    assert task.spec.container_spec is not None
    task.spec.container_spec.hostname = "{{.Node.Hostname}}"
    await launched(runner, task, service)
    assert len(threads) == 1 and threading.get_ident() not in threads
    await runner.close()


@pytest.mark.parametrize("status", ["running", "exited", "created", "removing"])
async def test_what_a_daemon_started_before_a_manager_heard_of_it_is_the_tasks(status: Status) -> None:
    left = container("web.1.t1", status=status, config=ContainerConfig(labels={TASK_LABEL: "t1"}))
    remove = AsyncMock()
    containers = Mock(wraps=SlowContainers(""), find=Mock(return_value=left), remove=remove)
    assignments = FakeAssignments()
    runner, service, task = made(cast(Containers, containers), assignments)
    await launched(runner, task, service)
    taken = status in ("running", "exited")
    assert (remove.await_count, containers.create.call_count) == ((0, 0) if taken else (1, 1))
    assert assignments.status.state == "starting"
    assert (assignments.status.container_id == left.id) is taken
    await runner.close()


async def test_a_container_of_somebody_else_is_no_tasks_whatever_its_name() -> None:
    other = container("web.1.t1", status="running")
    containers = Mock(wraps=SlowContainers(""), find=Mock(return_value=other))
    assignments = FakeAssignments()
    runner, service, task = made(cast(Containers, containers), assignments)
    await launched(runner, task, service)
    assert containers.create.call_count == 1 and assignments.status.container_id != other.id
    await runner.close()


async def test_a_task_without_room_says_so_in_plain_words(caplog: pytest.LogCaptureFixture) -> None:
    containers = SlowContainers("")
    failure = OSError(errno.ENOSPC, "No space left on device", "/data/containers/x")
    assignments = FakeAssignments()
    runner, service, task = made(
        cast(Containers, Mock(wraps=containers, create=AsyncMock(side_effect=failure))), assignments
    )
    await launched(runner, task, service)
    status = assignments.status
    assert (status.state, status.err) == ("rejected", "write /data/containers/x: no space left on device")
    assert not caplog.records, "it is nothing to look for in the log"
    await runner.close()


class StubbornContainers(SlowContainers):
    """Containers of tasks that are not removed at the first try."""

    def __init__(self, *tasks: str) -> None:
        super().__init__("")
        self.left = {f"box-{task}": task for task in tasks}
        self.faults: list[Exception] = [Conflict("device or resource busy"), OSError(errno.EIO, "input/output error")]

    def listing(self, *_: object) -> list[Any]:
        return [Mock(id=id, config=Mock(labels={TASK_LABEL: task})) for id, task in self.left.items()]

    async def remove(self, *request: object) -> None:
        reference = str(request[0])
        self.log.append(reference)
        if self.faults:
            raise self.faults.pop(0)
        del self.left[reference]


async def test_a_strangers_container_is_removed_at_last() -> None:
    containers = StubbornContainers("old")
    runner, _, _ = made(cast(Containers, containers))
    runner.remove_strangers()
    runner.remove_strangers()  # who is told twice does not try twice at once
    await until_async(lambda: not containers.left, "it is gone")
    runner.remove_strangers()
    await runner.close()
    assert containers.log == ["box-old"] * 3


@pytest.mark.parametrize("how", ["given", "not understood"])
async def test_who_is_no_stranger_any_more_is_left_alone(how: str) -> None:
    """The other one, which fails at the same time, is tried again."""
    containers, assignments = StubbornContainers("old", "other"), FakeAssignments()
    runner, _, _ = made(cast(Containers, containers), assignments)
    runner.remove_strangers()
    await until_async(lambda: len(containers.log) == 2, "both were tried once")
    if how == "given":
        assignments.own.append(Mock(id="old"))
    else:
        runner.remove_strangers(["old"])
    await until_async(lambda: "box-other" not in containers.left, "the other one is gone")
    await runner.close()
    assert containers.left and containers.log.count("box-old") == 1
