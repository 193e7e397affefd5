"""Several hosts on one machine, each with a daemon of its own: what tests of swarms stand on."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from bench.wire import Passed, Wire
from husk.kernel import namespaces
from tests.support.hosts import Host, HostDaemon, Hosts
from tests.support.lifecycle import inspect
from tests.support.overlays import Connection, echo


def sandbox(daemon: HostDaemon) -> Path:
    """That of a container with a published port."""
    daemon.docker("run", "-d", "--name", "same", "-p", "8080:80", "busybox", "sleep", "600")
    return Path(inspect(daemon, "same")["NetworkSettings"]["SandboxKey"])


def asks(client: Host, server: Host, seconds: float = 10) -> str:
    """Return the answer of the container behind the port; "" if nothing comes."""
    try:
        with Connection(client.inside, server.address, 8080, seconds) as connection:
            return connection.word
    except OSError:
        return ""


def test_daemons_on_hosts_that_are_killed_and_cut_off() -> None:
    with Hosts(2) as hosts, ExitStack() as stack:
        first, second = hosts
        daemons = [host.daemon() for host in hosts]
        # The same name, the same port: they know nothing of each other.
        for daemon in daemons:
            stack.enter_context(echo(partial(namespaces.run_inside, sandbox(daemon)), 80, daemon.where.name))
        assert (asks(second, first), asks(first, second)) == ("host1", "host2")
        daemons[0].kill9()
        assert asks(second, first) == "host1"
        daemons[0].start()
        hosts.cut(second, first)
        assert not asks(second, first, 0.5)
        hosts.mend()
        assert asks(second, first) == "host1"
        assert daemons[1].close() == []
        assert second.left() == []
        assert any(line.startswith("interface ") for line in first.left())


def test_what_a_daemon_leaves_on_its_host_is_told() -> None:
    hosts = Hosts(1)
    with pytest.raises(AssertionError, match="host1: interface left0"), hosts:
        hosts[0].daemon()
        hosts[0].run("ip", "link", "add", "left0", "type", "bridge")
    assert len(hosts) == 0


def test_what_a_host_sends_is_counted_by_port_and_nothing_stays() -> None:
    with Hosts(2) as hosts:
        first, second = hosts
        with Wire(first.enter, {"gossip": 7946, "none": 1}, local={"store": 2379}) as wire:
            before = wire.read()
            first.run("bash", "-c", f"echo -n 12345 >/dev/udp/{second.address}/7946")
            after = wire.read()
            first.run("bash", "-c", f"echo -n 12345 >/dev/udp/{first.address}/2379")
            assert wire.read_local() == {"store": Passed(1, 14 + 20 + 8 + 5)}
            again = wire.read()  # what is none of these may grow: hosts look for their neighbours
            assert (again["gossip"], again["none"]) == (after["gossip"], after["none"])
        assert after["gossip"].packets == before["gossip"].packets + 1 and after["none"] == Passed(0, 0)
        assert after["gossip"].bytes == before["gossip"].bytes + 14 + 20 + 8 + 5, "the frame, with its heads"
        assert first.left() == []
