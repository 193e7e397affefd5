import asyncio

import pytest

from husk.api.http.response import Response
from husk.client.calls import Calls
from husk.client.ending import Ending, ending, read
from husk.errors import CommandFailed, SystemFault
from tests.support.fake_engine import JSON


def test_what_an_answer_means():
    assert read({"StatusCode": 3}) == Ending(3, False)
    assert read({"StatusCode": 137, "OOMKilled": True}) == Ending(137, True)
    with pytest.raises(CommandFailed, match="no such file"):
        read({"StatusCode": 127, "Error": {"Message": "no such file"}})


async def test_who_is_cut_off_while_he_waits_may_ask_again(engine):
    over = asyncio.Event()

    async def wait(request):
        await over.wait()
        return Response(200, b'{"StatusCode": 0}', JSON)

    async def slow(request):
        asyncio.get_running_loop().call_later(0.05, over.set)
        return await wait(request)

    engine.answers("POST", "/containers/c1/wait", slow)
    calls = Calls(engine.dial)
    try:
        async with ending(calls, "/containers/c1", "removed") as ended:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await ended()
            assert await ended() == await ended() == Ending(0, False)
        assert engine.last("POST", "/containers/c1/wait").query == {"condition": "removed"}
    finally:
        await calls.close()


async def test_who_leaves_before_the_end_leaves_nothing(engine):
    engine.answers("POST", "/containers/c1/wait", {"StatusCode": 1, "Error": {"Message": "nobody hears of it"}})
    calls = Calls(engine.dial)
    async with ending(calls, "/containers/c1", "next-exit"):
        pass
    assert calls.tasks.count == 0
    await calls.close()


@pytest.mark.parametrize("answer", [{}, [], None])
def test_an_answer_without_an_exit_code_is_the_engines_fault(answer):
    with pytest.raises(SystemFault, match="no field StatusCode"):
        read(answer)


async def test_an_answer_without_a_key_is_the_engines_fault(engine, client):
    engine.answers("GET", "/swarm/unlockkey", {})
    with pytest.raises(SystemFault, match="no field UnlockKey"):
        await client.swarm.get_unlock_key()
