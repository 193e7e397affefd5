"""What may not become a container, and why, in Docker's words."""

import os

import pytest

from husk.engine.containers.model import Config, EndpointRequest, HostConfig, LogConfig, RestartPolicy
from husk.engine.containers.validate import check
from husk.errors import InvalidParameter, NotImplementedYet

MB = 1024 * 1024
CPUS = os.cpu_count() or 1


@pytest.mark.parametrize(
    ("config", "host_config"),
    [
        (Config(), HostConfig()),
        (Config(hostname="my_host.example-1"), HostConfig()),
        (Config(hostname="h" * 64, domainname="d"), HostConfig()),
        (Config(env=["A=", "B", "C=d=e"]), HostConfig()),
        (Config(stop_signal="RTMIN+3", stop_timeout=-1), HostConfig()),
        (Config(exposed_ports={"80": {}, "81/UDP": {}, "90-99/sctp": {}}), HostConfig()),
        (Config(), HostConfig(memory=6 * MB, memory_swap=-1, memory_swappiness=-1)),
        (Config(), HostConfig(isolation="default")),
        (Config(), HostConfig(restart_policy=RestartPolicy(name="on-failure", maximum_retry_count=3))),
        (Config(), HostConfig(restart_policy=RestartPolicy(name="", maximum_retry_count=3))),
        (Config(), HostConfig(auto_remove=True, restart_policy=RestartPolicy(name="no"))),
        (Config(), HostConfig(extra_hosts=["a:1.2.3.4", "b=::1", "c:[::1]", "d:host-gateway"])),
        (Config(), HostConfig(dns=["8.8.8.8", "::1"], dns_search=["a.b"], dns_options=["ndots:2"])),
        (Config(), HostConfig(security_opt=["no-new-privileges", "seccomp=unconfined", "label:disable"])),
        (Config(), HostConfig(cpuset_cpus="0", log_config=LogConfig(type="none"))),
    ],
)
def test_what_docker_takes_is_taken(config: Config, host_config: HostConfig) -> None:
    check(config, host_config, {})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Config(hostname="a b"), "invalid hostname format: a b"),
        (Config(hostname="a\nb"), "invalid hostname format: a\nb"),
        (Config(hostname="h" * 65), f"invalid hostname format: {'h' * 65}"),
        (Config(domainname="a\tb"), "invalid hostname format: a\tb"),
        (
            Config(working_dir="srv"),
            "the working directory 'srv' is invalid, it needs to be an absolute path",
        ),
        (Config(stop_signal="SIGNOTHING"), "invalid signal: SIGNOTHING"),
        (Config(env=["=a"]), "invalid environment variable: =a"),
        (Config(env=[""]), "invalid environment variable: "),
        (Config(cmd=["a\0b"]), "a configuration value contains a NUL character"),
        (Config(exposed_ports={"http": {}}), "invalid port specification: http"),
    ],
)
def test_a_configuration_is_refused(config: Config, message: str) -> None:
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
        (HostConfig(oom_score_adj=1001), "Invalid value 1001, range for oom score adj is [-1000, 1000]"),
        (HostConfig(cpuset_cpus="1-0"), "Invalid value 1-0 for cpuset cpus"),
        (HostConfig(cpuset_cpus="a"), "Invalid value a for cpuset cpus"),
        (HostConfig(isolation="hyperv"), "invalid isolation 'hyperv' on linux"),
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
        (HostConfig(log_config=LogConfig(type="paper")), "logger: no log driver named 'paper' is registered"),
        (HostConfig(pid_mode="x"), "invalid PID mode: x"),
        (HostConfig(ipc_mode="x"), "invalid IPC mode: x"),
        (HostConfig(uts_mode="x"), "invalid UTS mode: x"),
        (HostConfig(cgroupns_mode="x"), "invalid cgroup namespace mode: x"),
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
        check(Config(), host_config, {})
    assert caught.value.message == message


def test_a_cpu_that_is_not_there_is_not_available() -> None:
    with pytest.raises(InvalidParameter, match=r"^Requested CPUs are not available - requested 9999, available: "):
        check(Config(), HostConfig(cpuset_cpus="9999"), {})


def test_a_name_of_its_own_needs_a_uts_namespace_of_its_own() -> None:
    with pytest.raises(InvalidParameter, match=r"^conflicting options: hostname and the UTS mode$"):
        check(Config(hostname="h"), HostConfig(uts_mode="host"), {})


@pytest.mark.parametrize(
    ("host_config", "field"),
    [
        (HostConfig(cpu_count=5), "HostConfig.CpuCount"),
        (HostConfig(cpu_percent=5), "HostConfig.CpuPercent"),
        (HostConfig(ipc_mode="none"), "HostConfig.IpcMode none"),
        (HostConfig(security_opt=["apparmor=mine"]), "security option apparmor=mine"),
        (HostConfig(log_config=LogConfig(type="journald")), "log driver journald"),
    ],
)
def test_what_husk_cannot_do_yet_is_not_ignored(host_config: HostConfig, field: str) -> None:
    with pytest.raises(NotImplementedYet) as caught:
        check(Config(), host_config, {})
    assert caught.value.message == f"{field} is not implemented by Husk yet"


def test_an_endpoint_without_wishes_is_fine() -> None:
    check(Config(), HostConfig(), {"default": EndpointRequest()})
