"""Kernel settings of a container's own, and those that would be the host's."""

import pytest

from husk.engine.containers.config import limits
from husk.engine.model.container_config import HostConfig
from husk.errors import InvalidParameter


@pytest.mark.parametrize(
    "name", ["kernel.msgmax", "fs.mqueue.msg_max", "net.ipv4.ip_forward", "net/ipv4/tcp_syncookies"]
)
def test_what_belongs_to_a_namespace(name: str) -> None:
    limits.check_sysctls(HostConfig(sysctls={name: "1"}))


@pytest.mark.parametrize(
    ("name", "host", "message"),
    [
        ("kernel.panic", {}, "is not in a separate kernel namespace"),
        ("vm.swappiness", {}, "is not in a separate kernel namespace"),
        ("net.ipv4..x", {}, "is not in a separate kernel namespace"),
        ("net.ipv4.\n", {}, "is not in a separate kernel namespace"),
        ("kernel.shmmax", {"ipc_mode": "host"}, "not allowed in the hosts ipc namespace"),
        ("net.core.somaxconn", {"network_mode": "host"}, "not allowed in host network namespace"),
        ("kernel.domainname", {"uts_mode": "host"}, "not allowed in the hosts uts namespace"),
        ("kernel.hostname", {}, "conflicts with the OCI"),
    ],
)
def test_what_would_be_the_hosts(name: str, host: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        limits.check_sysctls(HostConfig(sysctls={name: "1"}, **host))  # type: ignore[arg-type]


def test_processors_are_named_in_no_more_than_a_page() -> None:
    """The kernel takes no longer text, and a running container would be told of it by a fault of its runtime."""
    limits.check(HostConfig(cpuset_cpus=",".join(["0"] * 2048)))
    for host in (HostConfig(cpuset_cpus=",".join(["0"] * 2049)), HostConfig(cpuset_mems=",".join(["0"] * 2049))):
        with pytest.raises(InvalidParameter, match="it has 4097 characters, 4095 is the most"):
            limits.check(host)


def test_a_device_with_a_number_of_thousands_of_digits_is_refused():
    with pytest.raises(InvalidParameter, match="device cgroup rule"):
        limits.device_rule(f"c {'9' * 5000}:1 rwm")


def test_the_options_of_a_tmpfs_have_no_more_than_a_page() -> None:
    """They are one text that mount(2) takes a page of."""
    limits.check(HostConfig(tmpfs={"/t": ",".join(["ro"] * 1365)}))
    with pytest.raises(InvalidParameter, match="tmpfs options have 4098 characters, 4095 is the most"):
        limits.check(HostConfig(tmpfs={"/t": "ro," * 1366}))
    for many in ({"/t": "ro," * 1_333_333}, {f"/{number}": "ro," * 1000 for number in range(1000)}):
        with pytest.raises(InvalidParameter, match="more than 65536 characters together"):
            limits.check(HostConfig(tmpfs=many))
