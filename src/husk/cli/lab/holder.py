"""The process that a lab belongs to: the first one of its process namespace. With it everything of the lab ends.

    python -m husk.cli.lab.holder --lab=/run/husk-labs/NAME NAME COUNT SUBNET

It makes the hosts and starts a daemon on each. A daemon that ends stays away, as that of a host that has died does,
until somebody wants it again (`Lab.wish`) and says so with SIGHUP.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from husk.cli.lab import wires
from husk.cli.lab.layout import Lab, LabHost, planned
from husk.kernel import apart
from husk.kernel.process import stop_ignoring_signals

# What it waits for: an end, and a wish.
NEWS = (signal.SIGCHLD, signal.SIGHUP)
_SERVE = ("-m", "husk", "serve")
# By process id. The objects are kept: for a child whose object is gone, `subprocess` itself takes the end.
Daemons = dict[int, tuple[LabHost, "subprocess.Popen[bytes]"]]


class HolderSystem:
    """System calls of a lab's process."""

    def keep_mounts_apart(self) -> None:
        apart.keep_mounts_apart()

    def switch(self) -> wires.Switch:
        return wires.Switch()

    def new_namespace(self) -> int:
        return wires.new_namespace()

    def await_news(self) -> None:
        signal.sigwait(NEWS)

    def next_end(self) -> tuple[int, int]:
        """The process id and the status of a child that has ended; (0, 0) where none has."""
        with suppress(ChildProcessError):
            return os.waitpid(-1, os.WNOHANG)
        return 0, 0

    def start(self, lab: Lab, host: LabHost, namespace: int) -> "subprocess.Popen[bytes]":
        """Start a host's daemon in its namespace."""

        def arrive() -> None:
            apart.enter_network(namespace)
            apart.unshare(apart.NAME)
            socket.sethostname(host.name)

        return spawn(lab.run / f"{host.name}.log", command(lab, host), arrive)


def main(arguments: Sequence[str]) -> None:
    lab = told(arguments)
    stop_ignoring_signals()
    apart.unshare(apart.MOUNTS | apart.PIDS)
    if os.fork() == 0:
        hold(lab, HolderSystem())


def told(arguments: Sequence[str]) -> Lab:
    """Return the lab that a holder's arguments tell of. The first is there to be found by. Pure."""
    _, name, count, subnet = arguments
    return planned(name, int(count), subnet)


def hold(lab: Lab, system: HolderSystem) -> None:
    """Never returns; where it fails nothing is left but directories."""
    # They are waited for, and handled nowhere: what is done for one is never interrupted by another.
    signal.pthread_sigmask(signal.SIG_BLOCK, NEWS)
    machine = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    system.keep_mounts_apart()
    switch = system.switch()
    switch.plug("machine", machine, lab.name, [lab.own_address])
    namespaces: dict[LabHost, int] = {}
    for host in lab.hosts:
        namespaces[host] = system.new_namespace()
        switch.plug(host.name, namespaces[host], wires.UPLINK, [host.address])
        lab.wish(host).touch()
    daemons: Daemons = {}
    while True:
        reap(daemons, system)
        start_wanted(lab, namespaces, daemons, system)
        system.await_news()


def reap(daemons: Daemons, system: HolderSystem) -> None:
    """Tell of those that have ended; of other processes the first one of a namespace has the end, too."""
    while (found := system.next_end())[0]:
        pid, status = found
        if pid in daemons:
            host, child = daemons.pop(pid)
            child.returncode = os.waitstatus_to_exitcode(status)
            _note(ended(host, child.returncode))


def start_wanted(lab: Lab, namespaces: Mapping[LabHost, int], daemons: Daemons, system: HolderSystem) -> None:
    """One that still runs is started when it has ended, if somebody wants it then. A failure is that host's alone."""
    running = {host for host, _ in daemons.values()}
    for host, namespace in namespaces.items():
        try:
            if host not in running and lab.wish(host).exists():
                lab.wish(host).unlink(missing_ok=True)
                child = system.start(lab, host, namespace)
                daemons[child.pid] = host, child
        except (OSError, subprocess.SubprocessError) as error:
            _note(ended(host, f"no start: {error}"))


def _note(line: str) -> None:
    with suppress(OSError):  # a full disk ends nobody
        print(line, flush=True)


def ended(host: LabHost, code: int | str = "") -> str:
    """Return the log's line about the end of a host's daemon."""
    return f"the daemon of {host.name} has ended with {code}"


def command(lab: Lab, host: LabHost) -> list[str]:
    """Return the command of a host's daemon. The settings in /etc are for the machine's own daemon alone."""
    settings = lab.run / "daemon.json"
    return [
        *(sys.executable, *_SERVE, "-H", host.docker_host, "--config-file", str(settings)),
        *("--data-root", str(host.data_root), "--exec-root", str(host.exec_root)),
    ]


def is_daemon_of(host: LabHost, arguments: Sequence[bytes]) -> bool:
    """Return True if this is the command line of the host's daemon, be it of another version of husk. Pure."""
    words = [os.fsdecode(each) for each in arguments]
    return tuple(words[1:4]) == _SERVE and ("--data-root", str(host.data_root)) in pairwise(words)


def spawn(log: Path, words: Sequence[str], arrive: Callable[[], None]) -> "subprocess.Popen[bytes]":
    """Start a program that hears all signals; `arrive` is called in the child before."""

    def begin() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, NEWS)
        arrive()

    with log.open("ab") as output:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=begin,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
