"""A request is completed from its image and its host by Docker's rules."""

import pytest
from msgspec.structs import replace

from husk.config import ContainerDefaults
from husk.config import DefaultUlimit as DaemonUlimit
from husk.engine.containers.config.merge import command, complete_host_config, inherit, merge_config
from husk.engine.host import EngineHost
from husk.engine.model.container_config import ContainerConfig, HealthConfig, HostConfig, Ulimit
from husk.errors import InvalidParameter
from husk.runtime.spec.host_facts import HostFacts
from tests.support.but import but

HOST = EngineHost(limits=HostFacts(), machine="x86_64", default_runtime="crun", init_path="", conmon_path="")
HOST_V1 = replace(HOST, limits=HostFacts(cgroup_mode="v1"))


@pytest.mark.parametrize(
    ("entrypoint", "cmd", "image_entrypoint", "image_cmd", "runs"),
    [
        (None, None, ["e"], ["c"], ["e", "c"]),
        (None, ["x"], ["e"], ["c"], ["e", "x"]),
        (["x"], None, ["e"], ["c"], ["x"]),
        (["x"], ["y"], ["e"], ["c"], ["x", "y"]),
        ([], ["y"], ["e"], ["c"], ["y"]),
        ([""], ["y"], ["e"], ["c"], ["y"]),
        (None, [], None, ["c", "d"], ["c", "d"]),
    ],
)
def test_the_command_is_what_docker_would_run(
    entrypoint: list[str] | None,
    cmd: list[str] | None,
    image_entrypoint: list[str] | None,
    image_cmd: list[str] | None,
    runs: list[str],
) -> None:
    config = merge_config(
        ContainerConfig(entrypoint=entrypoint, cmd=cmd), ContainerConfig(entrypoint=image_entrypoint, cmd=image_cmd)
    )
    assert command(config) == (runs[0], runs[1:])


@pytest.mark.parametrize(
    "request_config", [ContainerConfig(), ContainerConfig(entrypoint=[""]), ContainerConfig(cmd=[], entrypoint=[])]
)
def test_nothing_to_run_is_refused(request_config: ContainerConfig) -> None:
    with pytest.raises(InvalidParameter, match=r"^no command specified$"):
        merge_config(request_config, ContainerConfig())


def test_own_values_win_and_missing_ones_come_from_the_image() -> None:
    image = ContainerConfig(
        user="www", working_dir="/srv", stop_signal="SIGINT", env=["A=1", "B=2", "FLAG"], labels={"a": "1", "b": "2"},
        exposed_ports={"80/tcp": {}}, volumes={"/data": {}},
    )  # fmt: skip
    config = inherit(
        ContainerConfig(user="me", env=["B=3", "C="], labels={"b": "3"}, exposed_ports={"81/tcp": {}}), image
    )
    assert (config.user, config.working_dir, config.stop_signal) == ("me", "/srv", "SIGINT")
    assert config.env == ["B=3", "C=", "A=1", "FLAG"]
    assert config.labels == {"a": "1", "b": "3"}
    assert config.exposed_ports == {"80/tcp": {}, "81/tcp": {}}
    assert config.volumes == {"/data": {}}


def test_a_health_check_is_completed_field_by_field() -> None:
    image = ContainerConfig(healthcheck=HealthConfig(test=["CMD", "true"], interval=5, retries=3))
    assert inherit(ContainerConfig(healthcheck=HealthConfig(interval=7)), image).healthcheck == HealthConfig(
        test=["CMD", "true"], interval=7, retries=3
    )
    assert inherit(ContainerConfig(), image).healthcheck == image.healthcheck


def test_the_request_stays_as_it_was() -> None:
    request = ContainerConfig(cmd=["true"], env=["A=1"])
    merge_config(request, ContainerConfig(env=["B=2"], labels={"a": "b"}))
    assert request == ContainerConfig(cmd=["true"], env=["A=1"])


def test_the_host_s_defaults_are_written_out() -> None:
    config = complete_host_config(HostConfig(network_mode="default"), HOST)
    assert (config.network_mode, config.ipc_mode, config.cgroupns_mode) == ("bridge", "private", "private")
    assert (config.log_config.type, config.shm_size, config.runtime) == ("json-file", 64 << 20, "crun")


def test_without_cgroup_v2_the_cgroup_namespace_is_the_host_s() -> None:
    assert complete_host_config(HostConfig(), HOST_V1).cgroupns_mode == "host"


@pytest.mark.parametrize(
    ("privileged", "asked", "on", "expected"),
    [
        (False, "", HOST_V1, "private"),
        (True, "", HOST_V1, "host"),
        (True, "private", HOST_V1, "private"),
        (True, "", HOST, "private"),
    ],
)
def test_who_is_privileged_on_cgroup_v1_sees_the_host_s_groups(
    privileged: bool, asked: str, on: EngineHost, expected: str
) -> None:
    config = HostConfig(privileged=privileged, cgroupns_mode=asked)
    daemon = ContainerDefaults(default_cgroupns_mode="private")
    assert complete_host_config(config, on, daemon=daemon).cgroupns_mode == expected


@pytest.mark.parametrize(("memory", "swap", "expected"), [(0, 0, 0), (100, 0, 200), (100, -1, -1), (100, 150, 150)])
def test_swap_is_twice_the_memory_unless_asked_otherwise(memory: int, swap: int, expected: int) -> None:
    assert complete_host_config(HostConfig(memory=memory, memory_swap=swap), HOST).memory_swap == expected


@pytest.mark.parametrize(("asked", "limit"), [(None, None), (0, None), (-1, None), (-7, None), (5, 5)])
def test_no_limit_of_processes_has_several_spellings(asked: int | None, limit: int | None) -> None:
    assert complete_host_config(HostConfig(pids_limit=asked), HOST).pids_limit == limit


@pytest.mark.parametrize(("given", "kept"), [("/a/b/", "/a/b"), ("//a//b/../c", "/a/c"), ("/", "/"), ("", "")])
def test_the_working_directory_is_written_down_plainly(given: str, kept: str) -> None:
    assert merge_config(ContainerConfig(working_dir=given, cmd=["x"]), ContainerConfig()).working_dir == kept


def test_the_daemons_defaults_fill_in_what_a_request_does_not_say():
    daemon = ContainerDefaults(
        default_ipc_mode="shareable",
        default_shm_size=1 << 20,
        default_cgroupns_mode="host",
        cgroup_parent="/mine",
        default_ulimits=(DaemonUlimit("nofile", 1, 2), DaemonUlimit("core", 0, 0)),
        dns=("192.0.2.1",),
        dns_search=("example.test",),
        dns_opts=("ndots:2",),
    )
    plain = complete_host_config(HostConfig(), HOST, daemon=daemon)
    assert (plain.ipc_mode, plain.shm_size, plain.cgroupns_mode) == ("shareable", 1 << 20, "host")
    assert (plain.cgroup_parent, plain.dns, plain.dns_search, plain.dns_options) == (
        "/mine",
        ["192.0.2.1"],
        ["example.test"],
        ["ndots:2"],
    )
    asked = HostConfig(ipc_mode="private", shm_size=5, cgroupns_mode="private", cgroup_parent="/own", dns=["192.0.2.9"])
    asked = but(asked, ulimits=[Ulimit(name="nofile", soft=7, hard=8)])
    own = complete_host_config(asked, HOST, daemon=daemon)
    assert (own.ipc_mode, own.shm_size, own.cgroupns_mode, own.cgroup_parent) == ("private", 5, "private", "/own")
    assert own.dns == ["192.0.2.9"]
    assert [(limit.name, limit.soft) for limit in own.ulimits or ()] == [("nofile", 7), ("core", 0)]
