"""Orders to the runtime about a step."""

from pathlib import Path

import pytest

from husk.builder.graph.operations import Exec, ExecMount, ProcessSpec, StepLimits, StepUlimit
from husk.builder.steps import plan
from husk.config import ContainerDefaults, StepCeiling
from husk.engine.containers.config.spec import DEFAULT_PATH, Extras
from husk.engine.networks.connector import Connected
from husk.errors import InvalidParameter
from husk.runtime.assembly.paths import ContainerPaths
from husk.runtime.spec import capabilities
from husk.runtime.spec.users import ProcessUser
from tests.support.drivers import HOST

PATHS = ContainerPaths(Path("/r"), Path("/h"), Path("/n"), Path("/c"), "/husk/id")


def step(root: ExecMount | None = None, network: str = "sandbox", insecure: bool = False, **process: object) -> Exec:
    return Exec(
        process=ProcessSpec(**{"args": ["true"], **process}),  # type: ignore[arg-type]
        mounts=[root or ExecMount(target="/", input=0, output=0)],
        network=network,  # type: ignore[arg-type]
        insecure=insecure,
    )


def test_a_step_is_a_container_without_a_name() -> None:
    record = plan.record_of("id", step(user="ada", cwd="/work"), HOST, ContainerDefaults())
    assert (record.id, record.name, record.path, record.args) == ("id", "", "true", [])
    assert (record.config.hostname, record.config.user, record.config.working_dir) == (plan.HOSTNAME, "ada", "/work")
    assert record.host_config.network_mode == "bridge"
    assert not record.host_config.readonly_rootfs


def test_networks_by_their_words() -> None:
    def mode(**words: object) -> str:
        record = plan.record_of("id", step(**words), HOST, ContainerDefaults())  # type: ignore[arg-type]
        return record.host_config.network_mode

    assert [mode(network=word) for word in ("host", "none")] == ["host", "none"]
    assert mode(limits=StepLimits(network="mine")) == "mine"
    assert mode(network="none", limits=StepLimits(network="mine")) == "none"


def test_limits_and_rights() -> None:
    body = step(
        limits=StepLimits(memory=1 << 20, cpu_shares=5, cpuset_cpus="0", shm_size=9),
        ulimits=[StepUlimit("nofile", 1, 2)],
        cgroup_parent="/above",
        root=ExecMount(target="/", input=0, read_only=True),
    )
    record = plan.record_of("id", body, HOST, ContainerDefaults())
    spec = plan.spec_of(record, PATHS, ProcessUser(), HOST, Extras(), ["A=1"], ())
    assert (spec.resources.memory, spec.resources.cpu_shares, spec.resources.cpuset_cpus) == (1 << 20, 5, "0")
    assert [(limit.type, limit.soft, limit.hard) for limit in spec.rlimits] == [("RLIMIT_NOFILE", 1, 2)]
    assert (spec.shm_size, spec.cgroup_path, spec.read_only_rootfs) == (9, "/above/id", True)
    assert (spec.env, spec.mounts, spec.init_path) == (("A=1",), (), "")
    assert spec.seccomp is not None
    assert "/proc/kcore" in (spec.masked_paths or ())
    assert set(spec.capabilities) <= set(capabilities.DEFAULT)


MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("asked", "memory", "both", "quota"),
    [
        (StepLimits(), 64, 128, 50_000),
        (StepLimits(memory=32 * MEBIBYTE, cpu_period=1000, cpu_quota=100), 32, 64, 100),
        (StepLimits(memory=65 * MEBIBYTE, memory_swap=-1, cpu_period=1000, cpu_quota=501), 64, 128, 50_000),
        (StepLimits(memory=65 * MEBIBYTE, memory_swap=66 * MEBIBYTE, cpu_quota=-1), 64, 66, 50_000),
        (StepLimits(memory=32 * MEBIBYTE, memory_swap=900 * MEBIBYTE, cpu_quota=2000), 32, 128, 2000),
        (StepLimits(memory=-1, memory_swap=-2, cpu_period=-1, cpu_quota=-100_000), 64, 128, 50_000),
        (StepLimits(memory_swap=32 * MEBIBYTE), 32, 32, 50_000),
    ],
)
def test_no_step_gets_more_than_the_settings_say(asked: StepLimits, memory: int, both: int, quota: int) -> None:
    most = StepCeiling(memory=64 * MEBIBYTE, cpu_quota=50_000)
    found = plan.record_of("id", step(limits=asked), HOST, ContainerDefaults(), most).host_config
    assert (found.memory // MEBIBYTE, found.memory_swap // MEBIBYTE, found.cpu_quota) == (memory, both, quota)
    assert found.cpu_period == (asked.cpu_period if quota == asked.cpu_quota else 100_000)


def test_an_insecure_step_has_no_filter() -> None:
    record = plan.record_of("id", step(insecure=True), HOST, ContainerDefaults())
    spec = plan.spec_of(record, PATHS, ProcessUser(), HOST, Extras(), [], ())
    assert spec.privileged
    assert spec.seccomp is None


def test_the_environment() -> None:
    process = ProcessSpec(args=["x"], env=["A=1", "B=2"], proxy={"http_proxy": "p"})
    env = plan.environment(process, ["B=3", "S=t"], ProcessUser())
    assert env == [DEFAULT_PATH, "A=1", "B=3", "HTTP_PROXY=p", "http_proxy=p", "S=t"]
    assert "HOME=/" in plan.environment(process, [], ProcessUser(uid=7, listed=False))
    assert plan.environment(ProcessSpec(args=["x"], env=["PATH=/p"]), [], ProcessUser()) == ["PATH=/p"]


def test_network_files() -> None:
    body = step(extra_hosts=[("db", "10.0.0.1"), ("up", "host-gateway")], hostname="b")
    record = plan.record_of("id", body, HOST, ContainerDefaults(dns=("9.9.9.9",)))
    text = plan.hosts_file(record, Connected(("172.17.0.1",)))
    assert text == ("127.0.0.1\tlocalhost b\n::1\tlocalhost ip6-localhost ip6-loopback\n10.0.0.1\tdb\n172.17.0.1\tup\n")
    assert plan.resolv_conf_file(record, Connected(()), "nameserver 1.1.1.1\n") == "nameserver 9.9.9.9\n"


def test_how_a_failure_is_told() -> None:
    body = step(args=["/bin/sh", "-c", 'echo "x"'])
    with pytest.raises(plan.StepFailed) as failed:
        plan.check(body, 2)
    assert failed.value.message == ('process "/bin/sh -c echo \\"x\\"" did not complete successfully: exit code: 2')
    assert (failed.value.command, failed.value.exit_code) == ('/bin/sh -c echo "x"', 2)
    plan.check(body, 0)
    plan.check(step(valid_exit_codes=[3]), 3)
    with pytest.raises(plan.StepFailed):
        plan.check(step(valid_exit_codes=[3]), 0)


def test_a_process_without_arguments() -> None:
    with pytest.raises(InvalidParameter):
        plan.record_of("id", step(args=[]), HOST, ContainerDefaults())
