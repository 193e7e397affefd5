from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from husk.runtime.spec.document import (
    Device,
    DeviceRule,
    Resources,
    Rlimit,
    RuntimeContainer,
    SpecMount,
    Throttle,
    oci_spec,
)
from husk.runtime.spec.users import ProcessUser

PLAIN = RuntimeContainer(rootfs="/r", args=("sh",), hostname="box", cgroup_path="/husk/1")


def document(spec: RuntimeContainer, cgroup_v2: bool = False) -> Any:
    """As the runtime reads it."""
    return msgspec.json.decode(msgspec.json.encode(oci_spec(spec, cgroup_v2)))


def mounts(spec: RuntimeContainer) -> dict[str, Any]:
    return {mount["destination"]: mount for mount in document(spec)["mounts"]}


def test_a_plain_container_has_its_own_namespaces_and_dockers_mounts() -> None:
    spec = document(PLAIN)
    assert {item["type"] for item in spec["linux"]["namespaces"]} == {"mount", "network", "uts", "pid", "ipc"}
    assert [mount["destination"] for mount in spec["mounts"]] == [
        "/proc",
        "/dev",
        "/dev/pts",
        "/sys",
        "/sys/fs/cgroup",
        "/dev/mqueue",
        "/dev/shm",
    ]
    assert "ro" in mounts(PLAIN)["/sys"]["options"]
    assert "ro" in mounts(PLAIN)["/sys/fs/cgroup"]["options"]
    assert "size=67108864" in mounts(PLAIN)["/dev/shm"]["options"]
    assert "/proc/kcore" in spec["linux"]["maskedPaths"]
    assert "/proc/sys" in spec["linux"]["readonlyPaths"]
    assert spec["hostname"] == "box"
    assert spec["linux"]["cgroupsPath"] == "/husk/1"
    assert spec["linux"]["sysctl"]["net.ipv4.ip_unprivileged_port_start"] == "0"


def test_devices_are_forbidden_before_the_usual_ones_are_allowed() -> None:
    rules = document(PLAIN)["linux"]["resources"]["devices"]
    assert rules[0] == {"allow": False, "type": "a", "access": "rwm"}
    assert {"allow": True, "type": "c", "major": 1, "minor": 3, "access": "rwm"} in rules


def test_a_privileged_container_sees_and_may_everything() -> None:
    spec = document(replace(PLAIN, privileged=True, masked_paths=("/x",)))
    assert spec["linux"]["resources"]["devices"] == [{"allow": True, "type": "a", "access": "rwm"}]
    assert spec["linux"]["maskedPaths"] == spec["linux"]["readonlyPaths"] == []
    assert "sysctl" not in spec["linux"]
    by_path = mounts(replace(PLAIN, privileged=True))
    assert "rw" in by_path["/sys"]["options"]
    assert "rw" in by_path["/sys/fs/cgroup"]["options"]


def test_a_namespace_that_is_absent_is_the_hosts() -> None:
    spec = replace(PLAIN, namespaces={"mount": "", "pid": "", "network": "/run/netns/x"})
    namespaces = document(spec)["linux"]["namespaces"]
    assert namespaces == [{"type": "mount"}, {"type": "pid"}, {"type": "network", "path": "/run/netns/x"}]
    assert "hostname" not in document(spec)
    assert mounts(spec)["/dev/shm"]["source"] == "/dev/shm"


def test_the_hosts_network_keeps_its_sysctls() -> None:
    assert "sysctl" not in document(replace(PLAIN, namespaces={"mount": ""}))["linux"]


def test_a_network_namespace_that_is_there_has_its_sysctls_already() -> None:
    spec = replace(PLAIN, namespaces={"mount": "", "network": "/run/netns/x"})
    assert "sysctl" not in document(spec)["linux"]
    chosen = document(replace(spec, sysctls={"net.ipv4.ip_forward": "0"}))["linux"]["sysctl"]
    assert chosen == {"net.ipv4.ip_forward": "0"}


def test_the_clients_sysctl_wins_over_the_default() -> None:
    sysctls = document(replace(PLAIN, sysctls={"net.ipv4.ip_unprivileged_port_start": "1024"}))["linux"]["sysctl"]
    assert sysctls["net.ipv4.ip_unprivileged_port_start"] == "1024"


def test_the_domain_name_is_set_through_its_sysctl() -> None:
    assert document(replace(PLAIN, domainname="example.org"))["linux"]["sysctl"]["kernel.domainname"] == "example.org"


def test_a_mount_at_a_default_place_takes_its_place() -> None:
    spec = replace(PLAIN, mounts=(SpecMount("/dev/shm/", "bind", "/other/shm", ("rbind",)),))
    places = [mount["destination"] for mount in document(spec)["mounts"]]
    assert places.count("/dev/shm") + places.count("/dev/shm/") == 1


@given(st.permutations(["/a", "/a/b", "/a/b/c", "/d"]))
def test_a_parent_is_mounted_before_what_lies_below_it(order: list[str]) -> None:
    spec = replace(PLAIN, mounts=tuple(SpecMount(path, "bind", "/src") for path in order))
    places = [mount["destination"] for mount in document(spec)["mounts"]]
    assert places.index("/a") < places.index("/a/b") < places.index("/a/b/c")


def test_init_is_mounted_and_runs_the_command() -> None:
    spec = replace(PLAIN, init_path="/usr/bin/tini-static", args=("sleep", "1"))
    assert document(spec)["process"]["args"] == ["/sbin/docker-init", "--", "sleep", "1"]
    assert mounts(spec)["/sbin/docker-init"]["source"] == "/usr/bin/tini-static"


def test_the_process_is_described_whole() -> None:
    spec = replace(
        PLAIN,
        env=("A=b",),
        cwd="/work",
        user=ProcessUser(1, 2, (2, 3)),
        terminal=True,
        console_size=(24, 80),
        capabilities=("CAP_CHOWN",),
        no_new_privileges=True,
        rlimits=(Rlimit("RLIMIT_NOFILE", 5, -1),),
        oom_score_adj=100,
    )
    assert document(spec)["process"] == {
        "terminal": True,
        "consoleSize": {"height": 24, "width": 80},
        "user": {"uid": 1, "gid": 2, "additionalGids": [2, 3]},
        "args": ["sh"],
        "env": ["A=b"],
        "cwd": "/work",
        "capabilities": {"bounding": ["CAP_CHOWN"], "effective": ["CAP_CHOWN"], "permitted": ["CAP_CHOWN"]},
        "noNewPrivileges": True,
        "oomScoreAdj": 100,
        "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 5, "hard": 2**64 - 1}],
    }


def test_a_console_size_needs_a_terminal() -> None:
    assert "consoleSize" not in document(replace(PLAIN, console_size=(24, 80)))["process"]
    assert "consoleSize" not in document(replace(PLAIN, terminal=True, console_size=(0, 0)))["process"]


def test_limits_that_are_not_set_are_not_mentioned() -> None:
    assert set(document(PLAIN)["linux"]["resources"]) == {"devices"}
    assert "oomScoreAdj" not in document(PLAIN)["process"]
    assert "annotations" not in document(PLAIN)
    assert "seccomp" not in document(PLAIN)["linux"]


def test_limits_have_their_oci_names() -> None:
    limits = Resources(
        memory=1,
        memory_swap=2,
        memory_reservation=3,
        memory_swappiness=4,
        oom_kill_disable=True,
        cpu_shares=5,
        cpu_quota=6,
        cpu_period=7,
        cpuset_cpus="0",
        cpuset_mems="0",
        pids_limit=8,
        blkio_weight=9,
        blkio_weight_device=(Throttle(8, 0, 10),),
        blkio_read_bps=(Throttle(8, 0, 11),),
    )
    resources = document(replace(PLAIN, resources=limits))["linux"]["resources"]
    assert resources["memory"] == {"limit": 1, "swap": 2, "reservation": 3, "swappiness": 4, "disableOOMKiller": True}
    assert resources["cpu"] == {"shares": 5, "quota": 6, "period": 7, "cpus": "0", "mems": "0"}
    assert resources["pids"] == {"limit": 8}
    assert resources["blockIO"] == {
        "weight": 9,
        "weightDevice": [{"major": 8, "minor": 0, "weight": 10}],
        "throttleReadBpsDevice": [{"major": 8, "minor": 0, "rate": 11}],
    }


def test_what_the_second_version_of_cgroups_lacks_is_left_out_there() -> None:
    limits = Resources(memory=1, memory_swappiness=4, oom_kill_disable=True)
    assert document(replace(PLAIN, resources=limits), True)["linux"]["resources"]["memory"] == {"limit": 1}


@pytest.mark.parametrize("paths", [(), ("/only/this",)])
def test_the_clients_masked_paths_replace_the_default(paths: tuple[str, ...]) -> None:
    assert document(replace(PLAIN, masked_paths=paths))["linux"]["maskedPaths"] == list(paths)


def test_devices_rules_seccomp_and_annotations_are_passed_on() -> None:
    spec = replace(
        PLAIN,
        devices=(Device("/dev/x", "c", 1, 2, 0o600),),
        device_rules=(DeviceRule(True, "c", 1, 2, "rw"),),
        seccomp={"defaultAction": "SCMP_ACT_ALLOW"},
        annotations={"a": "b"},
        read_only_rootfs=True,
        rootfs_propagation="rslave",
    )
    result = document(spec)
    assert result["linux"]["devices"][0]["fileMode"] == 0o600
    assert result["linux"]["resources"]["devices"][-1] == {
        "allow": True,
        "type": "c",
        "major": 1,
        "minor": 2,
        "access": "rw",
    }
    assert result["linux"]["seccomp"] == {"defaultAction": "SCMP_ACT_ALLOW"}
    assert result["linux"]["rootfsPropagation"] == "rslave"
    assert result["annotations"] == {"a": "b"}
    assert result["root"] == {"path": "/r", "readonly": True}
