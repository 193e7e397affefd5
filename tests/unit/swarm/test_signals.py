import pytest

from husk.errors import Unavailable
from husk.swarm.signals import AwaitedSignal, Signal


def test_all_subscribers_hear_of_it_in_their_order() -> None:
    signal, heard = Signal[[str]](), list[str]()
    signal.emit("nobody hears")

    def second(what: str) -> None:
        heard.append(f"second {what}")

    signal.subscribe(heard.append)
    signal.subscribe(second)
    signal.emit("a")
    signal.unsubscribe(second)
    signal.emit("b")
    assert heard == ["a", "second a", "b"] and len(signal) == 1


async def test_whoever_emits_an_awaited_signal_hears_what_could_not_be_done() -> None:
    signal, heard = AwaitedSignal[[]](), list[str]()
    await signal.emit()

    async def hear() -> None:
        heard.append("first")

    async def fail() -> None:
        raise Unavailable("not now")

    signal.subscribe(hear)
    signal.subscribe(fail)
    signal.subscribe(hear)
    with pytest.raises(Unavailable, match="not now"):
        await signal.emit()
    assert heard == ["first"]
