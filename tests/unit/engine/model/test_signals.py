"""Signals by name or number."""

import signal

import pytest

from husk.engine.model.signals import parse_signal, stop_signal
from husk.errors import InvalidParameter


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SIGTERM", 15), ("term", 15), ("sigkill", 9), ("9", 9), ("09", 9), ("64", 64), ("CLD", 17), ("IOT", 6),
        ("POLL", 29), ("RTMIN", 34), ("SIGRTMIN+15", 49), ("RTMAX-14", 50), ("rtmax-1", 63), ("RTMAX", 64),
    ],
)  # fmt: skip
def test_a_signal_has_many_spellings(text: str, number: int) -> None:
    assert parse_signal(text) == number


@pytest.mark.parametrize("one", list(signal.Signals))
def test_every_signal_of_the_kernel_is_known(one: signal.Signals) -> None:
    assert parse_signal(one.name) == parse_signal(str(int(one))) == one


@pytest.mark.parametrize("text", ["", "0", "SIG", "SIGSIGTERM", "TERM ", "RTMIN+16", "²", "9" * 5000])
def test_what_is_no_signal_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse_signal(text)
    assert caught.value.message == f"invalid signal: {text}"


@pytest.mark.parametrize("text", ["65", "-1", "+99", "0100"])
def test_numbers_that_no_signal_has_are_refused_as_such(text: str) -> None:
    with pytest.raises(InvalidParameter, match=f"the linux daemon does not support signal {int(text)}$"):
        parse_signal(text)


@pytest.mark.parametrize(
    ("named", "number"), [(None, 15), ("", 15), ("INT", 2), ("BOGUS", 15), ("0", 15), ("9" * 5000, 15)]
)
def test_what_an_image_calls_its_stop_signal_keeps_nobody_from_stopping(named: str | None, number: int) -> None:
    assert stop_signal(named) == number
