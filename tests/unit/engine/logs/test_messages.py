"""Pieces of lines become messages."""

from husk.engine.logs.messages import LONGEST, Assembler, LogMessage
from husk.engine.logs.records import STDERR, STDOUT
from tests.unit.engine.logs.samples import TIME, record


def test_pieces_of_a_line_become_one_message() -> None:
    assembler = Assembler()
    assert assembler.add([record(b"one\n"), record(b"t", partial=True), record(b"err\n", STDERR)]) == [
        LogMessage(TIME, STDOUT, b"one"),
        LogMessage(TIME, STDERR, b"err"),
    ]
    assert assembler.pending
    assert assembler.add([record(b"wo\n")]) == [LogMessage(TIME, STDOUT, b"two")]
    assert not assembler.pending and assembler.flush() == []
    assembler.add([record(b"end", partial=True)])
    assert assembler.flush() == [LogMessage(TIME, STDOUT, b"end")]


def test_a_line_that_is_too_long_becomes_several_messages() -> None:
    messages = Assembler().add([record(b"x" * LONGEST, partial=True), record(b"x" * 10 + b"\n")])
    assert [(len(m.text), m.partial) for m in messages] == [(LONGEST, True), (10, False)]
