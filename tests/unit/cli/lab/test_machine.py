"""This machine as labs use it: which daemons are of a host, and whether they answer."""

import os
from pathlib import Path
from typing import Any

import pytest

from husk.cli.lab import holder
from husk.cli.lab.layout import Lab
from husk.cli.lab.machine import LabMachine, answers, daemons_of
from husk.errors import Forbidden


def test_only_its_daemon_is_found(machine: Any, lab: Lab) -> None:
    first, second = lab.hosts
    words = {
        1: holder.command(lab, first),
        2: ["/elsewhere/python", *holder.command(lab, first)[1:], "--debug"],
        3: holder.command(lab, second),
        4: ["du", str(first.data_root)],
        5: ["python", "-m", "husk", "serve", str(first.data_root)],
    }
    machine.processes = lambda: {pid: [os.fsencode(word) for word in each] for pid, each in words.items()}
    assert daemons_of(machine, first) == {1, 2}


def test_who_may_not_ask_a_host_is_told(machine: Any, known: Lab) -> None:
    assert not answers(machine, known.hosts[0])
    machine.refuses = True
    with pytest.raises(Forbidden, match="root's: run it with sudo"):
        answers(machine, known.hosts[0])


def test_who_may_not_read_a_record_is_told(machine: Any) -> None:
    class Closed(type(Path())):  # type: ignore[misc]
        def read_bytes(self) -> bytes:
            raise PermissionError

    with pytest.raises(Forbidden, match="root's: run it with sudo"):
        machine.read(Closed("record"))


def test_a_labs_process_is_known_by_a_mark(lab: Lab) -> None:
    assert LabMachine().holders(lab) == []
    assert LabMachine().with_argument(lab.mark) == {}
