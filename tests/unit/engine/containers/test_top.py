"""`docker top`: which lines of `ps` are the container's, and which options are refused."""

import pytest

from husk.engine.containers.top import check, parse
from husk.errors import InvalidParameter, SystemFault


def test_only_the_containers_processes_with_the_command_in_one_piece():
    text = (
        "UID          PID    PPID  C STIME TTY          TIME CMD\n"
        "root           1       0  0 04:00 ?        00:00:01 /sbin/init\n"
        "root       16449   16427  0 04:54 ?        00:00:00 sleep 20  00\n"
    )
    table = parse(text, {16449})
    assert table.titles == ["UID", "PID", "PPID", "C", "STIME", "TTY", "TIME", "CMD"]
    assert table.processes == [["root", "16449", "16427", "0", "04:54", "?", "00:00:00", "sleep 20 00"]]


def test_threads_go_with_their_process():
    text = "UID PID CMD\n0 7 a\n0 - -\n0 8 b\n0 - -\n"
    assert parse(text, {8}).processes == [["0", "8", "b"], ["0", "-", "-"]]


def test_a_command_line_cannot_forge_a_process():
    text = "PID CMD\n7 evil\x0b8 other\u20288 more\n"
    assert parse(text, {8}).processes == []


@pytest.mark.parametrize("text", ["", "CMD\nsleep\n", "PID CMD\nx y\n"])
def test_output_without_process_ids(text: str):
    with pytest.raises(SystemFault):
        parse(text, {1})


@pytest.mark.parametrize("arguments", ["-ef", "aux", "-o pid,cmd", "-o pid=PID", "-eo pid,comm --sort -rss"])
def test_accepted(arguments: str):
    assert " ".join(check(arguments)) == arguments


@pytest.mark.parametrize(
    "arguments", ["-o cmd=PID", "-o cmd=PID,x", "-o ppid= PID", "-ouser=PID", "\0", "a\nb", "x" * 2000]
)
def test_refused(arguments: str):
    with pytest.raises(InvalidParameter):
        check(arguments)
