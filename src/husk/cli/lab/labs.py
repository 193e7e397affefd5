"""Deeds of `husk lab`: a lab is made, found, and ended; the daemon of one of its hosts is ended and started again."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from husk.cli.lab.holder import ended
from husk.cli.lab.layout import MOST, USUAL_SUBNET, Lab, LabHost, free, planned, read, written
from husk.cli.lab.machine import LabMachine, answers, daemons_of
from husk.errors import Conflict, InvalidParameter, NotFound, SystemFault


@contextmanager
def made(machine: LabMachine, name: str, count: int, subnet: str = "") -> Iterator[Lab]:
    """Make a lab whose daemons answer; where what follows fails it is taken back."""
    lab = _make(machine, name, count, subnet)
    try:
        for host in lab.hosts:
            await_daemon(machine, lab, host)
        yield lab
    except BaseException:
        machine.take_back(lab)
        raise


def _make(machine: LabMachine, name: str, count: int, subnet: str = "") -> Lab:
    """Start a lab; nothing is there before, but what a former one left. Without a subnet at addresses nobody uses."""
    lab = planned(name, count, subnet or USUAL_SUBNET, machine.places)
    machine.check_root()
    if machine.holders(lab):
        raise Conflict(f"the lab {lab.name} is up: end it with `husk lab down`, or see `husk lab ls`")
    # First, for the interface of a lab that has just been killed is there for a moment.
    machine.take_back(lab)
    if not subnet:
        lab = planned(name, count, free(machine.in_use()), machine.places)
    for interface in machine.own_interfaces():
        if interface.network.overlaps(lab.subnet):
            raise InvalidParameter(f"this machine has the address {interface} already: choose another --subnet")
    _new(lab.run, 0o755)
    _new(lab.data, 0o700)
    lab.record.write_bytes(written(lab))
    (lab.run / "daemon.json").write_text("{}")
    machine.start(lab)
    return lab


def _new(directory: Path, mode: int) -> None:
    while True:
        directory.parent.mkdir(mode=0o755, exist_ok=True)
        # The last lab beside this one may take the parent away just now.
        with suppress(FileNotFoundError):
            return directory.mkdir(mode=mode)


def known(machine: LabMachine, name: str) -> Lab:
    """Find the lab of this name; NotFound where there is none."""
    try:
        text = machine.read(planned(name, 1, USUAL_SUBNET, machine.places).record)
    except FileNotFoundError:
        raise NotFound(f"there is no lab {name}: `husk lab up` makes one") from None
    return read(name, text, machine.places)


def end(machine: LabMachine, name: str) -> None:
    """End a lab, also one of which nothing is known any more."""
    machine.check_root()
    try:
        lab = known(machine, name)
    except NotFound:
        # What a machine that was switched off has on its disk.
        lab = planned(name, MOST, USUAL_SUBNET, machine.places)
    machine.take_back(lab)


def end_daemon(machine: LabMachine, name: str, host: str) -> None:
    """End the daemon of a host; its containers run on."""
    machine.check_root()
    lab = known(machine, name)
    there = lab.host(host)
    lab.wish(there).unlink(missing_ok=True)
    deadline = time.monotonic() + machine.patience
    # Once: a daemon that is told so several times ends at once, and leaves its work undone.
    for pid in (told := daemons_of(machine, there)):
        machine.tell(pid, signal.SIGTERM)
    while not told.isdisjoint(daemons_of(machine, there)):
        if time.monotonic() > deadline:
            raise SystemFault(f"the daemon of {host} does not end")
        time.sleep(machine.look)


def start_daemon(machine: LabMachine, name: str, host: str) -> None:
    """Start the daemon of a host, if it is not there."""
    machine.check_root()
    lab = known(machine, name)
    there = lab.host(host)
    if not (holders := machine.holders(lab)):
        raise Conflict(f"the lab {name} has ended: `husk lab up` makes another")
    if answers(machine, there):
        return
    said = lab.log.stat().st_size
    lab.wish(there).touch()
    try:
        for pid in holders:
            machine.tell(pid, signal.SIGHUP)
        await_daemon(machine, lab, there, said)
    finally:
        # It may have been about to start anyhow: a later end must not find the wish.
        lab.wish(there).unlink(missing_ok=True)


def await_daemon(machine: LabMachine, lab: Lab, host: LabHost, said: int = 0) -> None:
    """Wait until a host's daemon answers. `said`: how much of the log is older."""
    deadline = time.monotonic() + machine.patience
    while not answers(machine, host):
        news = lab.log.read_bytes()[said:].decode(errors="replace")
        if not machine.holders(lab) or ended(host) in news or time.monotonic() > deadline:
            raise SystemFault(f"{host.name} does not start: {_last_words(lab, host)}")
        time.sleep(0.05)


def _last_words(lab: Lab, host: LabHost) -> str:
    for path in (lab.run / f"{host.name}.log", lab.log):
        if path.exists() and (lines := path.read_text(errors="replace").strip().splitlines()):
            return lines[-1]
    return "it said nothing"
