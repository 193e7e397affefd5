import asyncio

import pytest

from husk.api.http.hijack import hijack
from husk.api.http.response import Unanswered
from husk.api.streams.framing import frame
from husk.client.container import Container
from husk.client.execs import Result
from husk.errors import CommandFailed, Conflict, InvalidParameter
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
    engine.answers("GET", "/exec/e1/json", {"ExitCode": 3, "Pid": 7})
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


def writes(*pieces, then=None):
    """A process that writes these, one by one, and ends; or waits for `then` before."""

    async def process(request):
        stream = hijack(request, b"")
        for stream_of, data in pieces:
            await stream.write(frame(stream_of, data))
        if then is not None:
            await then.wait()
        await stream.finish()
        return Unanswered()

    return process


NO_PROGRAM = b'OCI runtime exec failed: exec failed: exec: "nope": executable file not found in $PATH: unknown\r\n'


async def test_a_program_that_is_not_there_is_an_error_and_not_output(box, engine):
    engine.answers("POST", "/exec/e1/start", writes((1, NO_PROGRAM)))
    engine.answers("GET", "/exec/e1/json", {"ExitCode": 127, "Pid": 0})
    with pytest.raises(InvalidParameter, match="executable file not found") as raised:
        await box.exec("nope")
    assert raised.value.message == NO_PROGRAM.decode().strip()
    with pytest.raises(InvalidParameter, match="executable file not found"):
        assert [line async for line in box.exec("nope").lines()] == []


async def test_a_program_that_says_the_same_itself_has_said_it(box, engine):
    engine.answers("POST", "/exec/e1/start", writes((1, NO_PROGRAM)), writes((1, NO_PROGRAM), (1, b"more")))
    engine.answers("GET", "/exec/e1/json", {"ExitCode": 127, "Pid": 7})
    assert (await box.exec("echo")).stdout == NO_PROGRAM
    assert [data async for _, data in box.exec("echo")] == [NO_PROGRAM, b"more"]


async def test_its_time_is_over(box, engine):
    never = asyncio.Event()
    engine.answers("POST", "/exec/e1/start", writes((1, b"begun"), then=never))
    engine.answers("DELETE", "/exec/e1", None)
    result = await box.exec("sleep 60", timeout=0.05)
    assert (result.timed_out, result.stdout, result.exit_code, result.ok) == (True, b"begun", 137, False)
    assert engine.last("DELETE", "/exec/e1")
    with pytest.raises(TimeoutError, match=r"within 0\.05 seconds"):
        assert [data async for _, data in box.exec("sleep 60", timeout=0.05)] == [b"begun"]
    with pytest.raises(CommandFailed, match="its time was over\nbegun"):
        await box.exec("sleep 60", timeout=0.05, check=True)


async def test_so_much_of_its_output_is_kept(box, engine):
    result = await box.exec(["work"], input=b"", max_output=2)
    assert (result.stdout, result.stderr, result.truncated) == (b"ou", b"er", True)


async def test_its_failure_is_an_error_where_it_is_to_be(box, engine):
    with pytest.raises(CommandFailed, match="exit code 3\nerr") as raised:
        await box.exec(["work"], input=b"", check=True)
    assert raised.value.code == 3
    with pytest.raises(CommandFailed, match="exit code 3"):
        assert [line async for line in box.exec(["work"], input=b"", check=True).lines()] == ["out ", "err"]


def test_a_result_as_text_and_checked():
    good = Result(exit_code=0, stdout=b"one\ntwo\r\n", stderr=b"")
    assert (good.text, good.check()) == ("one\ntwo", good)
    bad = Result(exit_code=1, stdout=b"", stderr=b"x" * 1000 + b" why", oom_killed=True)
    with pytest.raises(CommandFailed, match=r"it used too much memory\nx+ why$") as raised:
        bad.check()
    assert len(raised.value.message) < 600


def test_a_result_in_a_notebook_has_no_markup_of_its_own():
    shown = Result(exit_code=1, stdout=b"<script>alert(1)</script>", stderr=b"<b>")._repr_html_()
    assert "exit code 1" in shown and "&lt;script&gt;" in shown and "<script" not in shown and "<b>" not in shown
    assert "100 bytes more" in Result(exit_code=0, stdout=b"x" * 100_100, stderr=b"")._repr_html_()
