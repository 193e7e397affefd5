"""The process that a lab belongs to: the first one of its process namespace. With it everything of the lab ends.

    python -m husk.cli.lab.holder --lab=/run/NAME NAME COUNT SUBNET

It makes the hosts and starts a daemon on each. A daemon that ends stays away, as that of a host that has died does,
until somebody wants it again (`Lab.wish`) and says so with SIGHUP.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from husk.cli.lab import wires
from husk.cli.lab.layout import Host, Lab, planned
from husk.kernel import apart
from husk.kernel.process import stop_ignoring_signals

LOOK = 0.1


def main(arguments: Sequence[str]) -> None:
    _, name, count, subnet = arguments
    stop_ignoring_signals()
    apart.unshare(apart.MOUNTS | apart.PIDS)
    if os.fork() == 0:
        hold(planned(name, int(count), subnet))


def hold(lab: Lab) -> None:
    """Never returns; where it fails nothing is left but directories."""
    machine = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    apart.keep_mounts_apart()
    switch = wires.Switch()
    switch.plug("machine", machine, lab.name, [lab.own_address])
    daemons: dict[int, Host] = {}
    namespaces: dict[str, int] = {}
    for host in lab.hosts:
        namespaces[host.name] = wires.new_namespace()
        switch.plug(host.name, namespaces[host.name], wires.UPLINK, [host.address])
        lab.wish(host).touch()

    def start_wanted(*_: object) -> None:
        for host in lab.hosts:
            if lab.wish(host).exists() and host not in daemons.values():
                lab.wish(host).unlink()
                daemons[start(lab, host, namespaces[host.name]).pid] = host

    signal.signal(signal.SIGHUP, start_wanted)
    start_wanted()
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            # All have ended; somebody may start one again.
            time.sleep(LOOK)
            continue
        if pid in daemons:
            code = os.waitstatus_to_exitcode(status)
            print(ended(daemons.pop(pid), code), flush=True)


def ended(host: Host, code: int | str = "") -> str:
    """What the log says of it."""
    return f"the daemon of {host.name} has ended with {code}"


def command(lab: Lab, host: Host) -> list[str]:
    """Whatever the machine's own daemon has in /etc is not for hosts of a lab."""
    settings = lab.run / "daemon.json"
    return [
        *(sys.executable, "-m", "husk", "serve", "-H", host.docker_host, "--config-file", str(settings)),
        *("--data-root", str(host.data_root), "--exec-root", str(host.exec_root)),
    ]


def start(lab: Lab, host: Host, namespace: int) -> "subprocess.Popen[bytes]":
    with open(lab.run / f"{host.name}.log", "ab") as log:
        return subprocess.Popen(
            command(lab, host),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_arrival(host, namespace),
        )


def _arrival(host: Host, namespace: int) -> Callable[[], None]:
    def arrive() -> None:
        apart.enter_network(namespace)
        apart.unshare(apart.NAME)
        socket.sethostname(host.name)

    return arrive


if __name__ == "__main__":
    main(sys.argv[1:])
