"""A container's log on its way to a receiver: no line is left out, whatever the receiver or the daemon does."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.engine.logs.forwarding import Forwarder, Ways
from husk.engine.logs.messages import LogReceiver
from husk.engine.model.container import Container
from husk.errors import InvalidParameter, SystemFault, Unavailable
from husk.runtime.logs.transport import ReceiverAddress, Touch
from tests.support.but import but
from tests.unit.engine.logs.samples import STAMP, container

T = TypeVar("T")
WHERE = ReceiverAddress("tcp", "192.0.2.1", 514)


class Box:
    """A container with a log; its record says whether it runs."""

    def __init__(self, directory: Path, record: Container) -> None:
        self.record, self.id = record, record.id
        self.path = directory / "container.log"
        self._exit: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def next_exit(self) -> "asyncio.Future[None]":
        return self._exit

    def write(self, *lines: str) -> None:
        with self.path.open("ab") as log:
            log.write(b"".join(STAMP + b" stdout F " + line.encode() + b"\n" for line in lines))

    def end(self) -> None:
        self.record = but(self.record, state=replace(self.record.state, status="exited"))
        if not self._exit.done():
            self._exit.set_result(None)


class FakeReceiver:
    """A record of what has arrived; `broken` is how many of the next packets do not."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.broken = 0
        self.away = self.silent = False
        self.connections = 0
        self.acknowledged: list[bytes] = []
        self.receiver: LogReceiver | None = LogReceiver(WHERE, lambda messages: [message.text for message in messages])

    @property
    def ways(self) -> Ways:
        return Ways(lambda record: self.receiver, cast(Any, self.connect), (0.001, 0.004))

    async def connect(self, address: ReceiverAddress, touch: Touch) -> "FakeReceiver":
        if self.silent:
            raise Unavailable("/hung does not answer")
        if self.away:
            raise ConnectionRefusedError(111, "Connection refused")
        self.connections += 1
        return self

    async def send(self, packet: bytes) -> None:
        if self.broken:
            self.broken -= 1
            raise BrokenPipeError(32, "Broken pipe")
        self.got.append(packet.decode())

    async def expect(self, answer: bytes) -> None:
        self.acknowledged.append(answer)

    async def close(self) -> None:
        self.connections -= 1


async def touch(path: str, work: Callable[[], T]) -> T:
    return work()


class House:
    def __init__(self, directory: Path, receiver: FakeReceiver) -> None:
        self.receiver = receiver
        self.box = Box(directory, container("syslog"))
        self.tasks = Tasks()
        self.there = True
        self.again()

    def again(self, ways: Ways | None = None) -> None:
        """Another daemon."""
        self.forwarder = Forwarder(
            lambda id: self.box.path, lambda id: self.there, self.tasks, touch, ways or self.receiver.ways
        )

    async def sent(self) -> None:
        async with asyncio.timeout(10):
            await self.tasks.join()


@pytest.fixture
async def house(tmp_path: Path, receiver: FakeReceiver) -> AsyncIterator[House]:
    made = House(tmp_path, receiver)
    yield made
    await made.tasks.cancel_all()


@pytest.fixture
def receiver() -> FakeReceiver:
    return FakeReceiver()


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.002)


async def test_lines_arrive_as_they_are_written_and_to_the_last(house: House, receiver: FakeReceiver) -> None:
    house.box.record = but(house.box.record, state=replace(house.box.record.state, status="running"))
    house.box.write("one")
    house.forwarder.running(house.box)
    house.forwarder.running(house.box)
    await until(lambda: receiver.got == ["one"])
    house.box.write("two", "three")
    house.box.end()
    await house.sent()
    assert receiver.got == ["one", "two", "three"] and receiver.connections == 0


async def test_a_container_that_is_removed_when_it_ends_is_sent_to_the_last_line(
    tmp_path: Path, receiver: FakeReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "box").mkdir()
    house = House(tmp_path / "box", receiver)
    house.box.record = but(house.box.record, state=replace(house.box.record.state, status="running"))
    house.box.write("one")
    with house.box.path.open("ab") as log:
        house.forwarder.running(house.box)
        shutil.rmtree(tmp_path / "box")
        log.write(STAMP + b" stdout F two\n")
    house.box.end()
    await house.sent()
    assert receiver.got == ["one", "two"] and "failed" not in caplog.text


async def test_the_next_daemon_goes_on_where_this_one_was(house: House, receiver: FakeReceiver) -> None:
    house.box.write("one", "two")
    house.forwarder.resume([house.box])
    await house.sent()
    house.box.write("three")
    house.again()
    house.forwarder.ended(house.box)
    await house.sent()
    assert receiver.got == ["one", "two", "three"]


async def test_what_cannot_be_read_of_the_place_means_all_again(house: House, receiver: FakeReceiver) -> None:
    house.box.write("one")
    house.box.path.with_name("forwarded").write_text("nonsense")
    house.forwarder.resume([house.box])
    await house.sent()
    assert receiver.got == ["one"] and house.box.path.with_name("forwarded").read_text() != "nonsense"


async def test_a_receiver_that_breaks_off_gets_every_line_once(
    house: House, receiver: FakeReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.broken = 4
    house.box.write("one", "two")
    house.forwarder.resume([house.box])
    await house.sent()
    assert receiver.got == ["one", "two"] and receiver.connections == 0
    assert caplog.text.count("waits: dial tcp 192.0.2.1:514: connect: broken pipe") == 1


async def test_a_container_that_is_removed_takes_the_rest_with_it(
    house: House, receiver: FakeReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.away, house.there = True, False
    house.box.write("one")
    house.forwarder.resume([house.box])
    await house.sent()
    assert receiver.got == [] and "so are lines its receiver never got" in caplog.text


async def test_a_word_that_was_asked_for_is_waited_for(house: House, receiver: FakeReceiver) -> None:
    receiver.receiver = LogReceiver(
        WHERE, lambda messages: [m.text for m in messages], acknowledges=lambda p: b"ok " + p
    )
    house.box.write("one")
    house.forwarder.resume([house.box])
    await house.sent()
    assert receiver.acknowledged == [b"ok one"]


async def test_a_container_does_not_start_without_its_receiver(house: House, receiver: FakeReceiver) -> None:
    await house.forwarder.starting(house.box)
    assert receiver.connections == 0
    receiver.away = True
    with pytest.raises(SystemFault, match=r"failed to initialize logging driver: dial tcp .* connection refused"):
        await house.forwarder.starting(house.box)
    receiver.receiver = LogReceiver(WHERE, lambda messages: [], waits=False)
    await house.forwarder.starting(house.box)


async def test_a_receiver_that_does_not_answer_is_waited_for(
    house: House, receiver: FakeReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.silent = True
    with pytest.raises(Unavailable, match="does not answer"):
        await house.forwarder.starting(house.box)
    house.box.write("one")
    house.forwarder.resume([house.box])
    await until(lambda: "waits: " in caplog.text)
    receiver.silent = False
    await house.sent()
    assert receiver.got == ["one"]


async def test_options_that_make_no_sense_any_more_keep_nobody_from_going_on(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.box.record = container("syslog", syslog_address="nowhere://x")
    house.again(Ways())
    house.box.write("one")
    house.forwarder.resume([house.box])
    house.forwarder.running(house.box)
    assert house.tasks.count == 0 and "is not sent: syslog-address should be in form" in caplog.text
    with pytest.raises(InvalidParameter):
        await house.forwarder.starting(house.box)


async def test_a_log_that_stays_here_and_one_that_never_began_are_not_sent(
    house: House, receiver: FakeReceiver
) -> None:
    house.forwarder.resume([house.box])
    receiver.receiver = None
    house.box.write("one")
    house.forwarder.resume([house.box])
    await house.forwarder.starting(house.box)
    assert house.tasks.count == 0


async def test_a_container_that_is_started_again_is_followed_on(house: House, receiver: FakeReceiver) -> None:
    house.box.write("one")
    receiver.away = True
    house.forwarder.resume([house.box])
    await asyncio.sleep(0)
    house.box.record = but(house.box.record, state=replace(house.box.record.state, status="running"))
    receiver.away = False
    await until(lambda: receiver.got == ["one"])
    house.box.write("two")
    house.box.end()
    await house.sent()
    assert receiver.got == ["one", "two"]
