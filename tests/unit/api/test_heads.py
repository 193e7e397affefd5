"""Where a head ends, what is none, and how an upgrade is shown to the parser."""

import pytest

from husk.api.heads import LONGEST, is_unfinished, upgradable, without_repeats

HEAD = b"POST /containers/web/attach?stdin=1 HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"


def test_a_head_is_unfinished_until_its_last_byte() -> None:
    assert all(is_unfinished(HEAD[:end]) for end in range(1, len(HEAD)))
    assert not is_unfinished(HEAD)
    assert not is_unfinished(HEAD + b"input")


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"hello",
        b"",
        b"HELLO\r\nthere",
        b"GET / HTTP/2.0\r\nHost",
        b"GET / HTTP/1.1\nHost: x",
        b"GET / HTTP/1.1\r\nHost: x\n",
        b"GET /" + b"x" * LONGEST,
    ],
)
def test_what_is_no_head_is_not_waited_for(data: bytes) -> None:
    assert not is_unfinished(data)


def test_an_upgrade_becomes_one_that_the_parser_keeps_input_for() -> None:
    assert upgradable(HEAD + b"Upgrade: tcp\r\n") == HEAD.replace(b"tcp", b"websocket") + b"Upgrade: tcp\r\n"


@pytest.mark.parametrize("data", [HEAD.replace(b"POST", b"GET"), HEAD.replace(b"tcp", b"h2c"), b"POST"])
def test_all_else_stays_as_it_is(data: bytes) -> None:
    assert upgradable(data) is data


def test_of_a_header_that_counts_once_the_first_stays() -> None:
    line, kept, body = b"POST / HTTP/1.1", b"\r\nContent-Type: a\r\nX: 1", b"\r\n\r\ncontent-type: d"
    data = line + kept + b"\r\ncontent-type: b\r\nX: 2\r\nCONTENT-TYPE: c" + body
    assert without_repeats(data) == line + kept + b"\r\nX: 2" + body


@pytest.mark.parametrize(
    "data",
    [
        HEAD,
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Type: a\r\nContent-Type: b\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Type: a\r\n\r\nGET / HTTP/1.1\r\nContent-Type: b\r\n\r\n",
        b"no head",
    ],
)
def test_other_heads_are_left_alone(data: bytes) -> None:
    assert without_repeats(data) is data
