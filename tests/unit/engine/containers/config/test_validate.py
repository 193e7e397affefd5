"""Requests that may not become a container, and why, in Docker's words."""

import os
import threading
from functools import partial

import pytest

from husk.engine.containers.config import limits
from husk.engine.containers.config.validate import (
    MOST_ENTRIES,
    MOST_LABELS,
    MOST_WORDS,
    check,
    check_aside,
    check_image,
)
from husk.engine.model.container_config import (
    ContainerConfig,
    EndpointRequest,
    HostConfig,
    LogConfig,
    PortBinding,
    RestartPolicy,
    Ulimit,
)
from husk.errors import InvalidParameter, NotImplementedYet

MB = 1024 * 1024
CPUS = os.cpu_count() or 1


@pytest.mark.parametrize(
    ("config", "host_config"),
    [
        (ContainerConfig(), HostConfig()),
        (ContainerConfig(hostname="my_host.example-1"), HostConfig()),
        (ContainerConfig(hostname="h" * 64, domainname="d"), HostConfig()),
        (ContainerConfig(env=["A=", "B", "C=d=e"]), HostConfig()),
        (ContainerConfig(stop_signal="RTMIN+3", stop_timeout=-1), HostConfig()),
        (ContainerConfig(exposed_ports={"80": {}, "81/UDP": {}, "90-99/sctp": {}}), HostConfig()),
        (ContainerConfig(), HostConfig(memory=6 * MB, memory_swap=-1, memory_swappiness=-1)),
        (ContainerConfig(), HostConfig(isolation="default")),
        (ContainerConfig(), HostConfig(restart_policy=RestartPolicy(name="on-failure", maximum_retry_count=3))),
        (ContainerConfig(), HostConfig(restart_policy=RestartPolicy(name="", maximum_retry_count=3))),
        (ContainerConfig(), HostConfig(auto_remove=True, restart_policy=RestartPolicy(name="no"))),
        (ContainerConfig(), HostConfig(extra_hosts=["a:1.2.3.4", "b=::1", "c:[::1]", "d:host-gateway"])),
        (ContainerConfig(), HostConfig(dns=["8.8.8.8", "::1"], dns_search=["a.b"], dns_options=["ndots:2"])),
        (ContainerConfig(), HostConfig(security_opt=["no-new-privileges", "seccomp=unconfined", "label:disable"])),
        (
            ContainerConfig(),
            HostConfig(security_opt=["apparmor=mine", "label=type:x", "no-new-privileges:false", "disable"]),
        ),
        (ContainerConfig(), HostConfig(security_opt=['seccomp={"defaultAction": "SCMP_ACT_ALLOW"}', "seccomp={}"])),
        (ContainerConfig(), HostConfig(pid_mode="container:a", ipc_mode="container:b", userns_mode="host")),
        (ContainerConfig(), HostConfig(ipc_mode="none", cgroup_parent="/x", cpu_count=5, cpu_percent=5, cgroup="x")),
        (
            ContainerConfig(),
            HostConfig(sysctls={"net.core.somaxconn": "1", "kernel.shmmax": "1", "fs.mqueue.msg_max": "5"}),
        ),
        (ContainerConfig(), HostConfig(tmpfs={"/t": "size=1m,mode=700,exec,ro,uid=1,gid=2,nr_inodes=5"})),
        (
            ContainerConfig(),
            HostConfig(ulimits=[Ulimit(name="NOFILE", soft=1, hard=-1), Ulimit(name="core", soft=-1, hard=-1)]),
        ),
        (ContainerConfig(), HostConfig(device_cgroup_rules=["c 1:* rwm", "b *:* m", "a *:* r"])),
        (ContainerConfig(), HostConfig(cpuset_cpus="0", log_config=LogConfig(type="none"))),
    ],
)
def test_what_docker_takes_is_taken(config: ContainerConfig, host_config: HostConfig) -> None:
    check(config, host_config, {})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ContainerConfig(hostname="a b"), "invalid hostname format: a b"),
        (ContainerConfig(hostname="a\nb"), "invalid hostname format: a\nb"),
        (ContainerConfig(hostname="h" * 65), f"invalid hostname format: {'h' * 65}"),
        (ContainerConfig(domainname="a\tb"), "invalid hostname format: a\tb"),
        (
            ContainerConfig(working_dir="srv"),
            "the working directory 'srv' is invalid, it needs to be an absolute path",
        ),
        (ContainerConfig(stop_signal="SIGNOTHING"), "invalid signal: SIGNOTHING"),
        (ContainerConfig(env=["=a"]), "invalid environment variable: =a"),
        (ContainerConfig(env=[""]), "invalid environment variable: "),
        (ContainerConfig(cmd=["a\0b"]), "a configuration value contains a NUL character"),
        (ContainerConfig(exposed_ports={"http": {}}), "invalid port specification: http"),
    ],
)
def test_a_configuration_is_refused(config: ContainerConfig, message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        check(config, HostConfig(), {})
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("host_config", "message"),
    [
        (HostConfig(memory=6 * MB - 1), "Minimum memory limit allowed is 6MB"),
        (HostConfig(memory=-1), "Minimum memory limit allowed is 6MB"),
        (
            HostConfig(memory_swap=MB),
            "You should always set the Memory limit when using Memoryswap limit, see usage",
        ),
        (
            HostConfig(memory=10 * MB, memory_swap=9 * MB),
            "Minimum memoryswap limit should be larger than memory limit, see usage",
        ),
        (
            HostConfig(memory=10 * MB, memory_reservation=11 * MB),
            "Minimum memory limit can not be less than memory reservation limit, see usage",
        ),
        (HostConfig(memory_reservation=MB), "Minimum memory reservation allowed is 6MB"),
        (HostConfig(memory_swappiness=101), "Invalid value: 101, valid memory swappiness range is 0-100"),
        (
            HostConfig(nano_cpus=1, cpu_period=1000),
            "Conflicting options: Nano CPUs and CPU Period cannot both be set",
        ),
        (HostConfig(nano_cpus=1, cpu_quota=1000), "Conflicting options: Nano CPUs and CPU Quota cannot both be set"),
        (
            HostConfig(nano_cpus=(CPUS + 1) * 10**9),
            f"range of CPUs is from 0.01 to {CPUS}.00, as there are only {CPUS} CPUs available",
        ),
        (
            HostConfig(cpu_period=999),
            "CPU cfs period can not be less than 1ms (i.e. 1000) or larger than 1s (i.e. 1000000)",
        ),
        (HostConfig(cpu_quota=999), "CPU cfs quota can not be less than 1ms (i.e. 1000)"),
        (HostConfig(blkio_weight=9), "Range of blkio weight is from 10 to 1000"),
        (HostConfig(shm_size=-1), "SHM size can not be less than 0"),
        (
            HostConfig(console_size=[-1, 5]),
            "invalid ConsoleSize [-1, 5]: height and width are between 0 and 65535",
        ),
        (HostConfig(oom_score_adj=1001), "Invalid value 1001, range for oom score adj is [-1000, 1000]"),
        (HostConfig(cpuset_cpus="1-0"), "Invalid value 1-0 for cpuset cpus: invalid format: 1-0"),
        (HostConfig(cpuset_cpus="a"), "Invalid value a for cpuset cpus: invalid format: a"),
        (HostConfig(isolation="hyperv"), "invalid isolation (hyperv): linux only supports 'default'"),
        (
            HostConfig(restart_policy=RestartPolicy(name="sometimes")),
            "invalid restart policy: unknown policy 'sometimes'; use one of 'no', 'always', 'on-failure', "
            "or 'unless-stopped'",
        ),
        (
            HostConfig(restart_policy=RestartPolicy(name="on-failure", maximum_retry_count=-1)),
            "invalid restart policy: maximum retry count cannot be negative",
        ),
        (
            HostConfig(restart_policy=RestartPolicy(name="always", maximum_retry_count=1)),
            "invalid restart policy: maximum retry count can only be used with 'on-failure'",
        ),
        (
            HostConfig(restart_policy=RestartPolicy(name="no", maximum_retry_count=-1)),
            "invalid restart policy: maximum retry count can only be used with 'on-failure' and cannot be negative",
        ),
        (
            HostConfig(auto_remove=True, restart_policy=RestartPolicy(name="always")),
            "can't create 'AutoRemove' container with restart policy",
        ),
        (HostConfig(pid_mode="x"), "invalid PID mode: x"),
        (HostConfig(ipc_mode="x"), "invalid IPC mode: x"),
        (HostConfig(uts_mode="x"), "invalid UTS mode: x"),
        (HostConfig(cgroupns_mode="x"), "invalid cgroup namespace mode: x"),
        (HostConfig(pid_mode="container:"), "invalid PID mode: container:"),
        (HostConfig(uts_mode="container:x"), "invalid UTS mode: container:x"),
        (HostConfig(userns_mode="private"), "invalid userns mode: private"),
        (HostConfig(security_opt=["seccomp"]), 'invalid --security-opt 1: "seccomp"'),
        (HostConfig(security_opt=["foo=bar"]), 'invalid --security-opt 2: "foo=bar"'),
        (HostConfig(security_opt=["no-new-privileges:x"]), 'invalid --security-opt 2: "no-new-privileges:x"'),
        (
            HostConfig(security_opt=['seccomp={"defaultAction": "SCMP_ACT_FOO"}']),
            "string SCMP_ACT_FOO is not a valid action for seccomp",
        ),
        (HostConfig(sysctls={"vm.swappiness": "1"}), 'sysctl "vm.swappiness" is not in a separate kernel namespace'),
        (HostConfig(sysctls={"": "1"}), 'sysctl "" is not in a separate kernel namespace'),
        (
            HostConfig(sysctls={"net.x": "1"}, network_mode="host"),
            'sysctl "net.x" not allowed in host network namespace',
        ),
        (
            HostConfig(sysctls={"kernel.sem": "1"}, ipc_mode="host"),
            'sysctl "kernel.sem" is not allowed in the hosts ipc namespace',
        ),
        (
            HostConfig(storage_opt={"size": "1G"}),
            "--storage-opt is supported only for overlay over xfs with 'pquota' mount option",
        ),
        (HostConfig(storage_opt={"x": "1G"}), "Unknown option x"),
        (
            HostConfig(io_maximum_iops=1),
            "Invalid QoS settings: linux does not support configuration of maximum IOPs",
        ),
        (HostConfig(ulimits=[Ulimit(name="x")]), "invalid ulimit type: x"),
        (
            HostConfig(ulimits=[Ulimit(name="nofile", soft=2, hard=1)]),
            "ulimit soft limit must be less than or equal to hard limit: 2 > 1",
        ),
        (HostConfig(device_cgroup_rules=["c 1:* rwx"]), "invalid device cgroup rule format: 'c 1:* rwx'"),
        (
            HostConfig(cpu_realtime_period=1, cpu_realtime_runtime=2),
            "cpu real-time runtime cannot be higher than cpu real-time period",
        ),
        (HostConfig(tmpfs={"/t": "bind"}), 'invalid tmpfs option "bind"'),
        (HostConfig(tmpfs={"/t": "foo=bar"}), 'invalid tmpfs option "foo"'),
        (HostConfig(extra_hosts=["a"]), 'bad format for add-host: "a"'),
        (HostConfig(extra_hosts=[":1.2.3.4"]), 'bad format for add-host: ":1.2.3.4"'),
        (HostConfig(extra_hosts=["a:1.2.3"]), 'invalid IP address in add-host: "1.2.3"'),
        (HostConfig(tmpfs={"t": ""}), "invalid mount path: 't' mount path must be absolute"),
        (HostConfig(tmpfs={"//": ""}), "invalid specification: destination can't be '/'"),
        (HostConfig(binds=["/a:/x"], tmpfs={"/x": ""}), "Duplicate mount point: /x"),
    ],
)
def test_a_host_configuration_is_refused(host_config: HostConfig, message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        check(ContainerConfig(), host_config, {})
    assert caught.value.message == message


def test_a_cpu_that_is_not_there_is_not_available() -> None:
    with pytest.raises(InvalidParameter, match=r"^Requested CPUs are not available - requested 9999, available: "):
        check(ContainerConfig(), HostConfig(cpuset_cpus="9999"), {})


def test_a_name_of_its_own_needs_a_uts_namespace_of_its_own() -> None:
    with pytest.raises(InvalidParameter, match=r"^conflicting options: hostname and the UTS mode$"):
        check(ContainerConfig(hostname="h"), HostConfig(uts_mode="host"), {})


def test_what_husk_cannot_do_yet_is_not_ignored() -> None:
    with pytest.raises(NotImplementedYet, match=r"^HostConfig.NetworkMode ns:<path> is not implemented"):
        check(ContainerConfig(), HostConfig(network_mode="ns:/run/netns/x"), {})


def test_an_endpoint_without_wishes_is_fine() -> None:
    check(ContainerConfig(), HostConfig(), {"default": EndpointRequest()})


def test_labels_have_a_limit_whoever_brings_them():
    labels = {f"key{number:06}": "v" * 40 for number in range(MOST_LABELS // 49 + 1)}
    for refuses in (partial(check, host=HostConfig(), endpoints={}), check_image):
        with pytest.raises(InvalidParameter, match=f"labels take more than {MOST_LABELS} characters"):
            refuses(ContainerConfig(labels=labels))
    check_image(ContainerConfig(labels=dict(list(labels.items())[1:])))


def test_many_ranges_of_processors_are_no_more_work_than_their_text(monkeypatch: pytest.MonkeyPatch):
    counted = 0

    def counting(*arguments: int) -> range:
        nonlocal counted
        counted += len(found := range(*arguments))
        return found

    monkeypatch.setattr(limits, "range", counting, raising=False)
    with pytest.raises(InvalidParameter, match=r"Requested CPUs are not available - requested 0-9999,0-9999"):
        check(ContainerConfig(), HostConfig(cpuset_cpus=",".join(["0-9999"] * 500)), {})
    check(ContainerConfig(), HostConfig(cpuset_cpus=",".join([f"0-{CPUS - 1}"] * 500)), {})
    assert counted <= 4 * CPUS
    with pytest.raises(InvalidParameter, match="invalid format: 0,1-0,0"):
        check(ContainerConfig(), HostConfig(cpuset_cpus=",".join(["0", "1-0"] * 500)), {})


def test_lists_of_a_host_configuration_have_an_end() -> None:
    hosts = [f"h{number}:192.0.2.1" for number in range(MOST_ENTRIES)]
    check(ContainerConfig(), HostConfig(extra_hosts=hosts), {})
    with pytest.raises(InvalidParameter, match=f"too many entries in Env: {MOST_WORDS} at most"):
        check(ContainerConfig(env=["A=b"] * (MOST_WORDS + 1)), HostConfig(), {})
    for host, endpoints, wire in (
        (HostConfig(extra_hosts=[*hosts, "a:192.0.2.1"]), {}, "HostConfig.ExtraHosts"),
        (HostConfig(tmpfs=dict.fromkeys([*hosts, "a"], "")), {}, "HostConfig.Tmpfs"),
        (HostConfig(), dict.fromkeys([*hosts, "a"], EndpointRequest()), "EndpointsConfig"),
    ):
        with pytest.raises(InvalidParameter, match=f"too many entries in {wire}"):
            check(ContainerConfig(), host, endpoints)
    ports: dict[str, list[PortBinding] | None] = {
        f"{port}/tcp": [PortBinding(host_port=str(port))] for port in range(1, 1 << 16)
    }
    check(ContainerConfig(), HostConfig(port_bindings=ports), {})


@pytest.mark.parametrize(("ports", "aside"), [(1, False), (300, True)])
async def test_a_request_with_many_ports_is_checked_in_a_thread(
    ports: int, aside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    monkeypatch.setattr(
        "husk.engine.networks.port_requests.check", lambda *_: threads.append(threading.current_thread())
    )
    bindings: dict[str, list[PortBinding] | None] = {str(number + 1): [PortBinding()] for number in range(ports)}
    await check_aside(ContainerConfig(), HostConfig(port_bindings=bindings), {})
    assert [thread is not threading.main_thread() for thread in threads] == [aside]
