import pytest

from husk.api.http.hijack import hijack
from husk.api.http.response import Unanswered
from husk.api.streams.framing import frame
from husk.client.container import Container
from husk.client.execs import Result
from husk.errors import Conflict
from tests.support.fake_engine import failed


@pytest.fixture
def box(calls, engine):
    async def process(request):
        stream = hijack(request, b"")
        given = b""
        while data := await stream.read():
            given += data
        await stream.write(frame(1, b"out " + given) + frame(2, b"err\n"))
        await stream.finish()
        return Unanswered()

    engine.answers("POST", "/containers/c1/exec", {"Id": "e1"})
    engine.answers("POST", "/exec/e1/start", process)
    engine.answers("GET", "/exec/e1/json", {"ExitCode": 3})
    return Container(calls, {"Id": "c1"})


async def test_its_result(box, engine):
    result = await box.exec("work hard", environment={"A": "1"}, user="me", working_dir="/w", input=b"in\n")
    assert result == Result(exit_code=3, stdout=b"out in\n", stderr=b"err\n")
    assert not result.ok
    asked = engine.last("POST", "/containers/c1/exec").document
    assert asked["Cmd"] == ["work", "hard"]
    assert (asked["Env"], asked["User"], asked["WorkingDir"], asked["AttachStdin"]) == (["A=1"], "me", "/w", True)


async def test_its_lines_and_then_its_exit_code(box):
    process = box.exec(["work"], input=b"\n")
    assert [line async for line in process.lines()] == ["out ", "err"]
    assert process.exit_code == 3


async def test_nothing_is_started_before_somebody_asks(box, engine):
    process = box.exec(["work"])
    assert engine.asked == []
    assert process.exit_code is None


async def test_left_to_itself(box, engine):
    engine.answers("POST", "/exec/e1/start", None)
    process = box.exec(["work"])
    await process.start()
    assert engine.last("POST", "/exec/e1/start").document == {"Detach": True, "Tty": False}


async def test_a_container_that_does_not_run(box, engine):
    engine.answers("POST", "/containers/c1/exec", failed(409, "container c1 is not running"))
    with pytest.raises(Conflict, match="not running"):
        await box.exec(["work"])


async def test_who_leaves_before_its_end_has_it_ended(box, engine):
    engine.answers("DELETE", "/exec/e1", None)
    pieces = aiter(box.exec(["work"], input=b""))
    await anext(pieces)
    await pieces.aclose()
    assert engine.last("DELETE", "/exec/e1")


async def test_an_engine_that_cannot_end_it(box, engine):
    engine.answers("DELETE", "/exec/e1", failed(404, "page not found"))
    pieces = aiter(box.exec(["work"], input=b""))
    await anext(pieces)
    await pieces.aclose()
