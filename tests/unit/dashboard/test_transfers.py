import asyncio
from collections.abc import AsyncIterator

import pytest

from husk.aio.tasks import Tasks
from husk.api.http.request import Request
from husk.api.http.response import Answer, StreamedResponse, fields
from husk.client.client import Client
from husk.client.progress import PullProgress
from husk.dashboard.live import Live
from husk.dashboard.transfers import DONE, FAILED, PULL, PUSH, RUNNING, LayerTransfers, Transfer
from husk.errors import Conflict, NotFound
from tests.support.fake_engine import FakeEngine


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    found = FakeEngine()
    yield found
    await found.close()


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    found = Tasks()
    yield found
    await found.cancel_all()


@pytest.fixture
async def transfers(engine: FakeEngine, tasks: Tasks) -> AsyncIterator[LayerTransfers]:
    client = Client(engine.dial)
    yield LayerTransfers(client, tasks, Live(client, tasks))
    await tasks.cancel_all()
    await client.close()


async def forever(request: Request) -> Answer:
    answer = StreamedResponse(request, fields({"Content-Type": "application/json"}))
    await answer.write(b'{"status":"Pulling fs layer","id":"f1"}\n')
    await answer.write(b'{"status":"Pulling fs layer","id":"f2"}\n')
    await asyncio.Event().wait()
    return answer


def test_layers_are_told_apart_and_end_full() -> None:
    transfer = Transfer("1", PULL, "app")
    for line in (
        PullProgress(status="Pulling from library/app", id="latest"),
        PullProgress(status="Pulling fs layer", id="f1"),
        PullProgress(status="Downloading", id="f1", current=5, total=10),
        PullProgress(status="Already exists", id="f2"),
        PullProgress(status="Status: Downloaded newer image"),
    ):
        transfer.take(line)
    assert transfer.word == "Status: Downloaded newer image"
    first, second = transfer.layers.values()
    assert (first.id, first.status, first.current, first.total, first.ended) == ("f1", "Downloading", 5, 10, False)
    assert (second.current, second.total, second.ended) == (1, 1, True)
    transfer.take(PullProgress(status="Pull complete", id="f1"))
    assert (first.current, first.ended) == (10, True)


async def test_a_pull_goes_to_its_end(engine: FakeEngine, tasks: Tasks, transfers: LayerTransfers) -> None:
    engine.answers("POST", "/images/create", b'{"status":"Pull complete","id":"f1"}\n{"status":"Status: done"}\n')
    transfer = transfers.start(PULL, "app:1")
    await tasks.join()
    assert (transfer.state, transfer.word, list(transfer.layers)) == (DONE, "Status: done", ["f1"])
    assert transfers.get(transfer.id) is transfer


async def test_what_goes_wrong_is_told(engine: FakeEngine, tasks: Tasks, transfers: LayerTransfers) -> None:
    engine.answers("POST", "/images/app/push", b'{"error":"denied","errorDetail":{"message":"denied"}}\n')
    transfer = transfers.start(PUSH, "app:1")
    await tasks.join()
    assert (transfer.state, transfer.word) == (FAILED, "denied")
    with pytest.raises(NotFound):
        transfers.get("never")


async def test_the_same_pull_is_begun_once_and_not_too_many(engine: FakeEngine, transfers: LayerTransfers) -> None:
    engine.answers("POST", "/images/create", forever)
    first = transfers.start(PULL, "app:0")
    assert transfers.start(PULL, "app:0") is first
    for number in range(1, 8):
        transfers.start(PULL, f"app:{number}")
    with pytest.raises(Conflict, match="under way"):
        transfers.start(PULL, "app:8")
    assert first.state == RUNNING


async def test_the_oldest_that_have_ended_are_forgotten(
    engine: FakeEngine, tasks: Tasks, transfers: LayerTransfers
) -> None:
    engine.answers("POST", "/images/create", b'{"status":"done"}\n')
    for number in range(40):
        transfers.start(PULL, f"app:{number}")
        await tasks.join()
    assert len(transfers.recent) == 32 and transfers.recent[0].name == "app:39"


async def test_the_last_word_before_a_silence_is_told(engine: FakeEngine, tasks: Tasks) -> None:
    engine.answers("POST", "/images/create", forever)
    client = Client(engine.dial)
    live = Live(client, tasks)
    transfers = LayerTransfers(client, tasks, live)
    with live.listening() as heard:
        transfer = transfers.start(PULL, "app:1")
        while len(transfer.layers) < 2:
            await asyncio.sleep(0)
        while not heard.empty():
            heard.get_nowait()
        while (await heard.get())[0] != "change":
            pass
    await tasks.cancel_all()
    await client.close()


async def test_a_fault_in_what_follows_ends_the_transfer(
    engine: FakeEngine, tasks: Tasks, transfers: LayerTransfers
) -> None:
    engine.answers("POST", "/images/create", b'{"status":"Status: done"}\n')

    async def then() -> str:
        raise KeyError("Id")

    transfer = transfers.start(PULL, "app:1", then)
    await tasks.join()
    assert transfer.state == FAILED and "has a fault" in transfer.word
