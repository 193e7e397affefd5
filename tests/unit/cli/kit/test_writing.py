import os

import pytest

from husk.cli.kit import writing


def test_all_is_written_at_once(capfd):
    writing.say("out")
    writing.complain("err")
    writing.document({"a": [1]})
    writing.line({"b": None})
    out, err = capfd.readouterr()
    assert (out, err) == ('out\n{"a":[1]}\n{"b":null}\n', "err\n")


def test_a_document_for_people_is_indented(capfd, monkeypatch):
    monkeypatch.setattr(writing, "at_terminal", lambda: True)
    writing.document({"a": 1})
    assert capfd.readouterr().out == '{\n  "a": 1\n}\n'


def test_who_reads_no_more_ends_the_program_without_a_word():
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(SystemExit) as left:
        writing.write(writer, b"x")
    os.close(writer)
    assert left.value.code == 141


def test_a_full_disk_is_said():
    with open("/dev/full", "wb") as full, pytest.raises(SystemExit, match="cannot write: No space left"):
        writing.write(full.fileno(), b"x")
