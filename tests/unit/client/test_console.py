from husk.api.http.hijack import hijack
from husk.api.http.response import Unanswered
from husk.api.streams.framing import frame
from husk.client.console import Console


async def echo(request):
    """Says what it hears, in capitals, on both streams in turn."""
    stream = hijack(request, b"")
    await stream.write(frame(2, b"ready\n"))
    while data := await stream.read():
        await stream.write(frame(1, data.upper()))
    await stream.write(frame(1, b"bye\n"))
    await stream.finish()
    return Unanswered()


async def console_of(calls, engine, sizes=None, multiplexed=True):
    engine.answers("POST", "/attach", echo)

    async def resize(height, width):
        sizes.append((height, width))

    return Console(*await calls.upgrade("/attach"), multiplexed=multiplexed, resize=resize)


async def test_both_directions_and_a_half_close(calls, engine):
    async with await console_of(calls, engine) as console:
        await console.write(b"one\n")
        await console.write_eof()
        assert [line async for line in console.lines()] == ["ready", "ONE", "bye"]


async def test_bytes_as_they_are_with_a_terminal(calls, engine):
    async with await console_of(calls, engine, multiplexed=False) as console:
        await console.write_eof()
        assert b"".join([data async for _, data in console]) == frame(2, b"ready\n") + frame(1, b"bye\n")


async def test_a_terminal_has_a_size(calls, engine):
    sizes: list[tuple[int, int]] = []
    async with await console_of(calls, engine, sizes) as console:
        await console.resize(24, 80)
    assert sizes == [(24, 80)]
