"""Deeds of `husk lab`, as far as they go without root."""

import signal
from ipaddress import IPv4Interface, IPv4Network
from typing import Any

import pytest

from husk.cli.lab import holder, labs
from husk.cli.lab.layout import Lab, read
from husk.errors import Conflict, Forbidden, InvalidParameter, NotFound, SystemFault

SUBNET = "10.99.0.0/24"


def make(machine: Any, name: str = "lab", count: int = 2, subnet: str = "") -> Lab:
    with labs.made(machine, name, count, subnet) as lab:
        return lab


def test_who_is_not_root_is_told(machine: Any, known: Lab) -> None:
    machine.root = False
    for deed in (
        lambda: make(machine),
        lambda: labs.end(machine, "lab"),
        lambda: labs.end_daemon(machine, "lab", "host1"),
        lambda: labs.start_daemon(machine, "lab", "host1"),
    ):
        with pytest.raises(Forbidden, match="root's: run it with sudo"):
            deed()
    assert not machine.taken_back and not machine.started


def test_what_cannot_be_made(machine: Any, lab: Lab) -> None:
    with pytest.raises(InvalidParameter, match="has 1 to 50 hosts"):
        make(machine, count=0)
    machine.up = [7]
    with pytest.raises(Conflict, match="is up: end it with `husk lab down`"):
        make(machine)
    assert not machine.taken_back and not lab.run.exists()


def test_a_subnet_that_the_machine_has_an_address_in_is_refused(machine: Any, lab: Lab) -> None:
    machine.own_interfaces = lambda: [IPv4Interface("10.99.0.7/24")]
    with pytest.raises(InvalidParameter, match="choose another --subnet"):
        make(machine, subnet=SUBNET)
    assert not lab.run.exists()


def test_a_former_lab_is_gone_before_addresses_are_looked_at(machine: Any) -> None:
    machine.interfaces = [IPv4Interface("10.99.0.1/24")]
    machine.on_start = lambda lab: lab.log.write_text("it cannot be\n")
    with pytest.raises(SystemFault, match="it cannot be"):
        make(machine, subnet=SUBNET)


def test_a_lab_that_does_not_start_is_taken_back(machine: Any, lab: Lab) -> None:
    machine.on_start = lambda lab: lab.log.write_text("first\nit cannot be\n")
    with pytest.raises(SystemFault, match="host1 does not start: it cannot be"):
        make(machine, subnet=SUBNET)
    assert machine.started == [lab]
    assert machine.taken_back == [lab, lab], "what a former one left, and this one"


def test_addresses_that_this_machine_uses_are_left_to_it(machine: Any) -> None:
    """A mirror of packages in the usual subnet would be hidden."""
    machine.used = [IPv4Network("198.51.100.7"), IPv4Network("203.0.113.0/25")]

    def start(lab: Lab) -> None:
        assert read("lab", lab.record.read_bytes(), machine.places) == lab
        lab.log.write_text("no\n")

    machine.on_start = start
    with pytest.raises(SystemFault):
        make(machine)
    assert [str(lab.subnet) for lab in machine.started] == ["192.0.2.0/24"]


def test_a_lab_of_which_nothing_is_known_is_taken_back_all_the_same(machine: Any) -> None:
    with pytest.raises(NotFound, match="there is no lab lab"):
        labs.known(machine, "lab")
    labs.end(machine, "lab")
    assert [each.size for each in machine.taken_back] == [50]


def test_a_lab_is_taken_back_as_large_as_it_is(machine: Any, known: Lab) -> None:
    labs.end(machine, "lab")
    assert machine.taken_back == [known]


def of_daemon(lab: Lab) -> list[bytes]:
    return [word.encode() for word in holder.command(lab, lab.hosts[0])]


def test_a_daemon_is_told_once_to_end(machine: Any, known: Lab) -> None:
    known.wish(known.hosts[0]).touch()
    machine.patience = 30.0
    running = iter([{7: of_daemon(known)}] * 5)
    machine.processes = lambda: next(running, {})
    labs.end_daemon(machine, "lab", "host1")
    assert machine.sent == [(7, signal.SIGTERM)] and next(running, None) is None
    assert not known.wish(known.hosts[0]).exists(), "nobody wants it any more"


def test_a_daemon_that_does_not_end_is_told_of(machine: Any, known: Lab) -> None:
    machine.processes = lambda: {7: of_daemon(known)}
    with pytest.raises(SystemFault, match="the daemon of host1 does not end"):
        labs.end_daemon(machine, "lab", "host1")


def test_a_wish_lasts_as_long_as_somebody_waits(machine: Any, known: Lab) -> None:
    machine.up = [7]
    seen: list[bool] = []
    machine.on_tell = lambda: seen.append(known.wish(known.hosts[0]).exists())
    with pytest.raises(SystemFault, match="host1 does not start"):
        labs.start_daemon(machine, "lab", "host1")
    assert machine.sent == [(7, signal.SIGHUP)]
    assert seen == [True] and not known.wish(known.hosts[0]).exists()


def test_a_lab_that_has_ended_starts_no_daemon(machine: Any, known: Lab) -> None:
    with pytest.raises(Conflict, match="the lab lab has ended"):
        labs.start_daemon(machine, "lab", "host1")
