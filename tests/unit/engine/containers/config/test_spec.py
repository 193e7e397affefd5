"""A record becomes what the runtime is told."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from husk.engine.containers.config.spec import (
    DEFAULT_PATH,
    NO_EXTRAS,
    Extras,
    environment,
    mounts,
    namespaces,
    plan,
    resources,
    rootfs_propagation,
    tmpfs,
)
from husk.engine.host import EngineHost
from husk.engine.model.container import MountPoint
from husk.engine.model.container_config import ContainerConfig, HostConfig, Ulimit
from husk.runtime.assembly.paths import ContainerPaths
from husk.runtime.seccomp.precompiled import ANNOTATION, STAND_IN
from husk.runtime.spec.document import Rlimit, RuntimeContainer
from husk.runtime.spec.host_facts import HostFacts
from husk.runtime.spec.users import ProcessUser
from tests.support.but import but
from tests.unit.engine.records import container

PATHS = ContainerPaths(
    rootfs=Path("/r"),
    hosts=Path("/d/hosts"),
    hostname=Path("/d/hostname"),
    resolv_conf=Path("/d/resolv.conf"),
    cgroup="/husk/x",
)
HOST = EngineHost(limits=HostFacts(), machine="x86_64", default_runtime="crun", init_path="/sbin/tini", conmon_path="")


def planned(
    config: ContainerConfig | None = None, host_config: HostConfig | None = None, extras: Extras = NO_EXTRAS
) -> RuntimeContainer:
    spec, warnings = plan(container(config=config, host_config=host_config), PATHS, ProcessUser(), HOST, extras)
    assert warnings == []
    return spec


def test_dockers_variables_come_first_and_the_container_s_own_win() -> None:
    assert environment(["A=1", "HOSTNAME=x", "A=2"], "h", tty=True) == (DEFAULT_PATH, "HOSTNAME=x", "TERM=xterm", "A=2")


def test_a_name_without_a_value_takes_a_variable_away() -> None:
    assert environment(["PATH", "TERM"], "h", tty=True) == ("HOSTNAME=h",)


@pytest.mark.parametrize("mode", ["bridge", "none", "my-network"])
def test_no_container_shares_the_host_s_network_unasked(mode: str) -> None:
    record = container(config=ContainerConfig(network_disabled=True), host_config=HostConfig(network_mode=mode))
    assert namespaces(record)["network"] == ""


def test_a_container_joins_its_sandbox() -> None:
    record = container(host_config=HostConfig(network_mode="bridge"))
    record = but(record, sandbox_path="/run/netns/x")
    assert namespaces(record)["network"] == "/run/netns/x"


def test_namespaces_of_the_host_are_those_asked_for() -> None:
    own = HostConfig(network_mode="bridge", cgroupns_mode="private")
    assert set(namespaces(container(host_config=own))) == {"mount", "network", "pid", "ipc", "uts", "cgroup"}
    shared = HostConfig(network_mode="host", pid_mode="host", ipc_mode="host", uts_mode="host", cgroupns_mode="host")
    assert set(namespaces(container(host_config=shared))) == {"mount"}


def test_files_about_the_network_are_mounted_unless_the_client_brings_its_own() -> None:
    record = container()
    assert {m.destination: m.source for m in mounts(record, PATHS)} == {
        "/etc/resolv.conf": "/d/resolv.conf",
        "/etc/hostname": "/d/hostname",
        "/etc/hosts": "/d/hosts",
    }
    record = but(record, mounts=[MountPoint(type="bind", source="/my", destination="/etc/hosts", rw=False)])
    (own,) = [m for m in mounts(record, PATHS) if m.destination == "/etc/hosts"]
    assert (own.source, own.options) == ("/my", ("rbind", "rprivate", "rro"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ("noexec", "nosuid", "nodev")),
        ("size=64m,mode=700", ("noexec", "nosuid", "nodev", "size=64m", "mode=700")),
        ("exec,dev", ("nosuid",)),
        ("ro,suid", ("noexec", "nodev", "ro")),
    ],
)
def test_a_tmpfs_is_safe_unless_asked_otherwise(options: str, expected: tuple[str, ...]) -> None:
    assert tmpfs("/t", options).options == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [("size=1m,shared", "shared"), ("rslave", "rslave"), ("runbindable", "rslave"), ("private", ""), ("", "")],
)
def test_a_tmpfs_with_propagation_needs_a_root_that_lets_it_through(options: str, expected: str) -> None:
    assert rootfs_propagation(container(host_config=HostConfig(tmpfs={"/t": options}))) == expected


def test_a_tmpfs_replaces_what_else_is_mounted_there() -> None:
    record = container(host_config=HostConfig(tmpfs={"/x/": "size=1m"}))
    record = but(record, mounts=[MountPoint(type="volume", name="v", source="/v", destination="/x")])
    assert [m.type for m in mounts(record, PATHS) if m.destination.startswith("/x")] == ["tmpfs"]


def test_limits_that_were_not_set_are_not_written() -> None:
    assert resources(HostConfig()) == planned().resources == type(planned().resources)()


def test_parts_of_a_cpu_become_a_quota() -> None:
    limits = resources(HostConfig(nano_cpus=1_500_000_000))
    assert (limits.cpu_quota, limits.cpu_period) == (150_000, 100_000)
    limits = resources(HostConfig(cpu_quota=5000, cpu_period=10_000))
    assert (limits.cpu_quota, limits.cpu_period) == (5000, 10_000)


def test_a_container_is_confined_unless_asked_otherwise() -> None:
    assert planned().seccomp is not None
    assert planned(host_config=HostConfig(security_opt=["seccomp:unconfined"])).seccomp is None
    assert planned(host_config=HostConfig(privileged=True)).seccomp is None


def test_a_filter_that_the_runtime_takes_compiled_is_not_written_twice() -> None:
    whole, short = planned(), planned(extras=Extras(annotations={ANNOTATION: "AAAA"}, filtered=True))
    assert short.seccomp == STAND_IN and short.annotations == {ANNOTATION: "AAAA"}
    assert whole.seccomp != STAND_IN


@pytest.mark.parametrize(
    ("option", "holds"),
    [("no-new-privileges", True), ("no-new-privileges:true", True), ("no-new-privileges=false", False)],
)
def test_no_new_privileges_has_several_spellings(option: str, holds: bool) -> None:
    assert planned(host_config=HostConfig(security_opt=[option])).no_new_privileges is holds


def test_the_rest_goes_through() -> None:
    spec = planned(
        ContainerConfig(working_dir="/srv", tty=True, hostname="h", domainname="d"),
        HostConfig(init=True, readonly_rootfs=True, ulimits=[Ulimit(name="nofile", soft=1, hard=2)], oom_score_adj=5),
    )
    assert (spec.args, spec.cwd, spec.terminal, spec.hostname, spec.domainname) == (("true",), "/srv", True, "h", "d")
    assert (spec.init_path, spec.read_only_rootfs, spec.oom_score_adj) == ("/sbin/tini", True, 5)
    assert spec.rlimits == (Rlimit("RLIMIT_NOFILE", 1, 2),)
    assert planned().cwd == "/"
    assert planned().init_path == ""


def test_what_the_host_cannot_give_is_a_warning() -> None:
    poor = replace(HOST, limits=HostFacts(controllers=frozenset()))
    _, warnings = plan(container(host_config=HostConfig(memory=10**8)), PATHS, ProcessUser(), poor)
    assert any("memory limit" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("exec,noexec", ("nosuid", "nodev", "noexec")),
        ("noexec,exec", ("nosuid", "nodev")),
        ("ro,rw,size=1m", ("noexec", "nosuid", "nodev", "rw", "size=1m")),
        ("suid,nosuid,suid", ("noexec", "nodev")),
        ("rshared,private", ("noexec", "nosuid", "nodev", "private")),
    ],
)
def test_of_opposite_words_of_a_tmpfs_the_last_wins(words: str, expected: tuple[str, ...]) -> None:
    assert tmpfs("/t", words).options == expected


def test_an_empty_home_is_as_if_there_were_none() -> None:
    assert environment(["HOME="], "h", tty=False) == (DEFAULT_PATH, "HOSTNAME=h")
    assert "HOME=/" in environment(["HOME="], "h", tty=False, home="/")
    assert "HOME=/x" in environment(["HOME=/x"], "h", tty=False, home="/")


def test_a_negative_quota_is_none() -> None:
    assert resources(HostConfig(cpu_quota=-1)).cpu_quota is None
