"""Requests of HostConfig are there inside the container: devices, limits, namespaces, security, kernel settings."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import RUNTIME, Answer, Daemon

BUSYBOX = {"Image": "busybox", "Cmd": ["true"]}


def create(daemon: Daemon, **host_config: Any) -> Answer:
    return daemon.http("POST", "/containers/create", {**BUSYBOX, "HostConfig": host_config})


def started(daemon: Daemon, **host_config: Any) -> Answer:
    made = create(daemon, **host_config)
    assert made.status == 201, made.body
    return daemon.http("POST", f"/containers/{made.json()['Id']}/start")


def run(daemon: Daemon, *options: str, script: str) -> str:
    return daemon.docker("run", "--rm", *options, "busybox", "sh", "-c", script).stdout


def inspect(daemon: Daemon, name: str) -> dict[str, Any]:
    return dict(json.loads(daemon.docker("inspect", name).stdout)[0])


def cgroup(daemon: Daemon, container: str, controller: str, file: str, parent: str = "") -> str:
    path = f"{parent or daemon.config.cgroup_parent}/{container}/{file}".lstrip("/")
    v1 = Path("/sys/fs/cgroup", controller, path)
    return (v1 if v1.exists() else Path("/sys/fs/cgroup", path)).read_text()


def test_the_terminal_has_its_size_when_the_program_starts(daemon: Daemon) -> None:
    def size(path: str, console: list[int]) -> str:
        body = {"Image": "busybox", "Cmd": ["stty", "size"], "Tty": True, "HostConfig": {"ConsoleSize": console}}
        made = daemon.http("POST", f"{path}/containers/create", body).json()["Id"]
        daemon.docker("start", made)
        daemon.docker("wait", made)
        return daemon.docker("logs", made).stdout

    assert size("", [21, 43]) == "21 43\n"
    assert "21 43" not in size("/v1.41", [21, 43]), "a client that old cannot have meant it"
    assert size("", [21]) == size("", []), "as Go reads too short a list"


@pytest.fixture(scope="module")
def block_device() -> str:
    for name in sorted(os.listdir("/sys/block")):
        if os.path.exists(f"/dev/{name}") and not name.startswith(("loop", "ram", "zram")):
            return f"/dev/{name}"
    pytest.skip("this host has no disk")


# --- devices


def test_a_device_can_be_used_as_far_as_allowed(daemon: Daemon) -> None:
    script = "ls -l /dev/rest | cut -c1; head -c 4 /dev/rest | wc -c; echo x 2>&1 > /dev/rest || echo no"
    shown = run(daemon, "--device", "/dev/hwrng:/dev/rest:r", script=script)
    if not os.path.exists("/dev/hwrng"):
        pytest.skip("no device at hand that containers do not have anyway")
    assert shown.split()[0] == "c" and shown.split()[-1] == "no"


def test_what_is_not_allowed_cannot_be_opened(daemon: Daemon) -> None:
    node = "mknod /tmp/tun c 10 200 && (: < /tmp/tun) 2> /dev/null && echo opened || echo refused"
    if RUNTIME != "runc":  # which lets every container open this one, before its version 1.2
        assert run(daemon, script=node) == "refused\n"
    assert run(daemon, "--device-cgroup-rule", "c 10:200 r", script=node) == "opened\n"
    assert run(daemon, "--device-cgroup-rule", "c *:* rwm", script=node) == "opened\n"
    assert run(daemon, "--device", "/dev/net/tun", script="(: < /dev/net/tun) && echo opened") == "opened\n"


def test_a_directory_of_devices(daemon: Daemon) -> None:
    assert run(daemon, "--device", "/dev/net:/dev/n", script="ls /dev/n") == "tun\n"


@pytest.mark.parametrize(
    ("path", "reason"), [("/dev/nope", "no such file or directory"), ("/etc", "not a device node")]
)
def test_a_device_that_is_none_fails_the_start(daemon: Daemon, path: str, reason: str) -> None:
    answer = started(daemon, Devices=[{"PathOnHost": path, "PathInContainer": "/dev/x", "CgroupPermissions": "rwm"}])
    wanted = f'error gathering device information while adding custom device "{path}": {reason}'
    assert (answer.status, answer.message) == (400, wanted)


def test_gpus_are_refused_in_dockers_words(daemon: Daemon) -> None:
    done = daemon.docker("run", "--gpus", "all", "busybox", "true", check=False)
    assert 'could not select device driver "" with capabilities: [[gpu]]' in done.stderr
    assert done.returncode == 125


# --- limits


def test_block_io(daemon: Daemon, block_device: str) -> None:
    container = daemon.docker(
        "run", "-d", "--device-read-bps", f"{block_device}:1mb", "--device-write-iops", f"{block_device}:50",
        "busybox", "sleep", "600",
    ).stdout.strip()  # fmt: skip
    numbers = os.stat(block_device).st_rdev
    device = f"{os.major(numbers)}:{os.minor(numbers)}"
    if os.path.exists("/sys/fs/cgroup/blkio"):
        assert f"{device} 1048576" in cgroup(daemon, container, "blkio", "blkio.throttle.read_bps_device")
        assert f"{device} 50" in cgroup(daemon, container, "blkio", "blkio.throttle.write_iops_device")
    else:
        assert "rbps=1048576" in cgroup(daemon, container, "", "io.max")


def test_block_io_of_something_else_fails_the_start(daemon: Daemon) -> None:
    for path, wanted in (("/dev/nope", "stat /dev/nope: no such file or directory"), ("/dev/null", "not a block")):
        answer = started(daemon, BlkioDeviceReadBps=[{"Path": path, "Rate": 1000}])
        assert answer.status == 400 and wanted in answer.message


def test_weights_are_set_or_discarded_with_a_warning(daemon: Daemon, block_device: str) -> None:
    made = create(daemon, BlkioWeight=300, BlkioWeightDevice=[{"Path": block_device, "Weight": 200}])
    assert made.status == 201
    if not os.path.exists("/sys/fs/cgroup/blkio/blkio.weight") and os.path.exists("/sys/fs/cgroup/blkio"):
        assert made.json()["Warnings"] == [
            "Your kernel does not support Block I/O weight or the cgroup is not mounted. Weight discarded.",
            "Your kernel does not support Block I/O weight_device or the cgroup is not mounted. "
            "Weight-device discarded.",
        ]
    assert daemon.http("POST", f"/containers/{made.json()['Id']}/start").status == 204


def test_real_time(daemon: Daemon) -> None:
    made = create(daemon, CpuRealtimeRuntime=1000, CpuRealtimePeriod=1_000_000)
    container = made.json()["Id"]
    assert daemon.http("POST", f"/containers/{container}/start").status == 204
    if not os.path.exists("/sys/fs/cgroup/cpu/cpu.rt_runtime_us"):
        assert "Your kernel does not support CPU real-time scheduler" in made.json()["Warnings"][0]


def test_a_parent_of_the_clients_choice(daemon: Daemon) -> None:
    parent = f"/hktest{os.getpid()}/below"
    container = daemon.docker("run", "-d", "--cgroup-parent", parent, "busybox", "sleep", "600").stdout.strip()
    pid = str(inspect(daemon, container)["State"]["Pid"])
    assert pid in cgroup(daemon, container, "pids", "cgroup.procs", parent).split()
    assert daemon.docker("top", container).stdout.count("sleep 600") == 1
    assert "PIDS" in daemon.docker("stats", "--no-stream", container).stdout
    daemon.docker("rm", "-f", container)
    assert not list(Path("/sys/fs/cgroup").glob(f"*/hktest{os.getpid()}")), "and nothing of it stays"


def test_ulimits(daemon: Daemon) -> None:
    shown = run(daemon, "--ulimit", "nofile=100:200", "--ulimit", "core=0", script="ulimit -Sn; ulimit -Hn; ulimit -c")
    assert shown.split() == ["100", "200", "0"]


def test_a_ulimit_beyond_the_hosts_is_cut_with_a_warning_or_granted(daemon: Daemon) -> None:
    answer = started(daemon, Ulimits=[{"Name": "nofile", "Soft": 1024, "Hard": 2**30}])
    assert answer.status == 204, answer.body


@pytest.mark.parametrize(
    ("host_config", "message"),
    [
        ({"Ulimits": [{"Name": "x", "Soft": 1, "Hard": 1}]}, "invalid ulimit type: x"),
        (
            {"Ulimits": [{"Name": "nofile", "Soft": 2, "Hard": 1}]},
            "ulimit soft limit must be less than or equal to hard limit: 2 > 1",
        ),
        ({"DeviceCgroupRules": ["c 1 r"]}, "invalid device cgroup rule format: 'c 1 r'"),
        (
            {"CpuRealtimePeriod": 1, "CpuRealtimeRuntime": 2},
            "cpu real-time runtime cannot be higher than cpu real-time period",
        ),
        ({"Sysctls": {"kernel.panic": "1"}}, 'sysctl "kernel.panic" is not in a separate kernel namespace'),
        (
            {"Sysctls": {"net.ipv4.ip_forward": "1"}, "NetworkMode": "host"},
            'sysctl "net.ipv4.ip_forward" not allowed in host network namespace',
        ),
        ({"Tmpfs": {"/t": "foo=bar"}}, 'invalid tmpfs option "foo"'),
        (
            {"StorageOpt": {"size": "1G"}},
            "--storage-opt is supported only for overlay over xfs with 'pquota' mount option",
        ),
        ({"Runtime": "nope"}, "unknown or invalid runtime name: nope"),
        ({"PidMode": "container:nope"}, "No such container: nope"),
        ({"SecurityOpt": ["foo=bar"]}, 'invalid --security-opt 2: "foo=bar"'),
        (
            {"Annotations": {"": "x"}},
            "invalid Annotations: the empty string is not permitted as an annotation key",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_creation(daemon: Daemon, host_config: dict[str, Any], message: str) -> None:
    answer = create(daemon, **host_config)
    assert (answer.status, answer.message) == (400, message)
    assert daemon.docker("ps", "-aq").stdout == ""


def test_what_other_systems_have_is_said_to_be_discarded(daemon: Daemon) -> None:
    made = create(daemon, CpuPercent=50, CpuCount=1)
    assert made.json()["Warnings"] == ["linux does not support CPU percent. Percent discarded."]
    assert inspect(daemon, made.json()["Id"])["HostConfig"]["CpuPercent"] == 0


# --- namespaces


def test_the_processes_of_another_container(daemon: Daemon) -> None:
    daemon.docker("run", "-d", "--name", "one", "busybox", "sleep", "611")
    assert "sleep 611" in run(daemon, "--pid", "container:one", script="ps")
    daemon.docker("create", "--name", "two", "--pid", "container:one", "busybox", "true")
    assert inspect(daemon, "two")["HostConfig"]["PidMode"] == "container:" + inspect(daemon, "one")["Id"]
    daemon.docker("rename", "one", "uno")
    daemon.docker("start", "-a", "two")
    daemon.docker("stop", "-t", "0", "uno")
    refused = daemon.docker("start", "two", check=False)
    assert f"container {inspect(daemon, 'uno')['Id']} is not running" in refused.stderr


def test_the_memory_of_another_container(daemon: Daemon) -> None:
    daemon.docker("run", "-d", "--name", "one", "--ipc", "shareable", "--shm-size", "1m", "busybox", "sleep", "600")
    daemon.docker("exec", "one", "sh", "-c", "echo hi > /dev/shm/note")
    both = "readlink /proc/self/ns/ipc; cat /dev/shm/note; df -k /dev/shm | tail -1 | awk '{print $2}'"
    theirs = daemon.docker("exec", "one", "sh", "-c", both).stdout
    assert run(daemon, "--ipc", "container:one", script=both) == theirs
    assert theirs.split()[1:] == ["hi", "1024"]
    daemon.docker("restart", "-t", "0", "one")
    assert daemon.docker("exec", "one", "ls", "/dev/shm").stdout == ""


@pytest.mark.parametrize(
    "mode, joining", [("pid", "failed to join PID"), ("ipc", "failed to join IPC"), ("network", "joining network")]
)
def test_who_was_joined_must_be_there(daemon: Daemon, mode: str, joining: str) -> None:
    """It is the other one that is not found or does not run, and the container's last exit stays known."""
    daemon.docker("run", "-d", "--name", "one", "--ipc", "shareable", "busybox", "sleep", "600")
    daemon.docker("run", "--name", "two", f"--{mode}=container:one", "busybox", "sh", "-c", "exit 7", check=False)
    daemon.docker("kill", "one")
    answer = daemon.http("POST", "/containers/two/start")
    status = 500 if mode == "pid" else 409  # as dockerd
    assert (answer.status, "one is exited" in answer.message or "is not running" in answer.message) == (status, True)
    daemon.docker("rm", "one")
    answer = daemon.http("POST", "/containers/two/start")
    assert (answer.status, answer.message.startswith(f"{joining} namespace")) == (400, True), answer.message
    assert "No such container: " in answer.message
    state = inspect(daemon, "two")["State"]
    assert (state["Status"], state["ExitCode"], state["Error"]) == ("exited", 7, answer.message)


def test_devices_that_no_driver_has(daemon: Daemon) -> None:
    asked = [{"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}]
    made = create(daemon, DeviceRequests=asked).json()["Id"]
    answer = daemon.http("POST", f"/containers/{made}/start")
    assert (answer.status, answer.message) == (400, 'could not select device driver "" with capabilities: [[gpu]]')
    assert inspect(daemon, made)["HostConfig"]["DeviceRequests"] == [{**asked[0], "DeviceIDs": None, "Options": None}]


def test_a_container_that_shares_no_memory(daemon: Daemon) -> None:
    daemon.docker("run", "-d", "--name", "one", "busybox", "sleep", "600")
    done = daemon.docker("run", "--ipc", "container:one", "busybox", "true", check=False)
    assert "non-shareable IPC (hint: use IpcMode:shareable for the donor container)" in done.stderr
    assert run(daemon, "--ipc", "none", script="ls /dev | grep -c shm || true") == "0\n"


def test_shared_memory_survives_the_daemon(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    daemon.docker("run", "-d", "--name", "one", "--ipc", "shareable", "busybox", "sh", "-c", "sleep 600")
    daemon.docker("exec", "one", "touch", "/dev/shm/note")
    daemon.kill9()
    daemon.start()
    assert run(daemon, "--ipc", "container:one", script="ls /dev/shm") == "note\n"


@pytest.mark.parametrize(
    ("options", "kind", "same"),
    [
        (["--uts", "host"], "uts", True),
        ([], "uts", False),
        (["--ipc", "host"], "ipc", True),
        (["--pid", "host"], "pid", True),
        (["--cgroupns", "host"], "cgroup", True),
        (["--cgroupns", "private"], "cgroup", False),
        (["--userns", "host"], "user", True),
    ],
)
def test_namespaces_of_the_host(daemon: Daemon, options: list[str], kind: str, same: bool) -> None:
    link = f"/proc/self/ns/{kind}"
    assert (run(daemon, *options, script=f"readlink {link}").strip() == os.readlink(link)) is same


# --- what a process may


def test_a_seccomp_profile_of_ones_own(daemon: Daemon, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    rule = {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 17}
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [rule]}))
    script = "mkdir /tmp/x 2>&1; unshare -m true && echo unshared"
    shown = run(daemon, "--security-opt", f"seccomp={profile}", "--cap-add", "SYS_ADMIN", script=script)
    assert "File exists" in shown and "unshared" in shown


def test_rules_of_a_profile_may_depend_on_capabilities(daemon: Daemon, tmp_path: Path) -> None:
    rule = {
        "names": ["mkdir", "mkdirat"],
        "action": "SCMP_ACT_ERRNO",
        "includes": {"arches": ["amd64", "arm64"], "minKernel": "4.8"},
        "excludes": {"caps": ["CAP_SYS_ADMIN"]},
    }
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [rule]}))
    option = ("--security-opt", f"seccomp={profile}")
    script = "mkdir /tmp/x 2> /dev/null && echo made || echo refused"
    assert run(daemon, *option, script=script) == "refused\n"
    assert run(daemon, *option, "--cap-add", "SYS_ADMIN", script=script) == "made\n"


def test_seccomp_unconfined_and_builtin(daemon: Daemon) -> None:
    script = "grep Seccomp: /proc/self/status | tr -dc 0-9"
    assert run(daemon, "--security-opt", "seccomp=unconfined", script=script) == "0"
    assert run(daemon, "--security-opt", "seccomp=builtin", script=script) == "2"


def test_a_process_beside_the_first_is_filtered_like_it(daemon: Daemon) -> None:
    box = daemon.docker("run", "-d", "--rm", "busybox", "sleep", "60").stdout.strip()
    script = "grep Seccomp: /proc/self/status | tr -dc 0-9; unshare -U true 2>&1; echo fork | cat"
    shown = daemon.docker("exec", box, "sh", "-c", script).stdout
    daemon.docker("kill", box)
    assert shown == "2unshare: unshare(0x10000000): Operation not permitted\nfork\n"


@pytest.mark.parametrize(
    ("option", "bit"),
    [("no-new-privileges", "1"), ("no-new-privileges:true", "1"), ("no-new-privileges:false", "0")],
)
def test_no_new_privileges(daemon: Daemon, option: str, bit: str) -> None:
    shown = run(daemon, "--security-opt", option, script="grep NoNewPrivs /proc/self/status | tr -dc 0-9")
    assert shown == bit


def test_system_paths_unconfined(daemon: Daemon) -> None:
    script = "wc -c < /proc/timer_list; touch /proc/sys/kernel/hostname && echo writable"
    shown = run(daemon, "--security-opt", "systempaths=unconfined", script=script)
    assert shown.split()[0] != "0" and "writable" in shown


def test_modules_that_this_host_lacks_change_nothing(daemon: Daemon) -> None:
    for option in ("apparmor=unconfined", "label=disable", "label=type:container_t"):
        assert run(daemon, "--security-opt", option, script="echo runs") == "runs\n"
    if not os.path.exists("/sys/module/apparmor"):
        assert run(daemon, "--security-opt", "apparmor=mine", script="echo runs") == "runs\n"


def test_privileged_containers_have_no_label(daemon: Daemon) -> None:
    daemon.docker("create", "--name", "box", "--privileged", "busybox", "true")
    assert inspect(daemon, "box")["HostConfig"]["SecurityOpt"] == ["label=disable"]


# --- and the rest


def test_kernel_settings(daemon: Daemon) -> None:
    shown = run(
        daemon, "--sysctl", "net.ipv4.ip_default_ttl=33", "--sysctl", "kernel.msgmax=9000",
        script="cat /proc/sys/net/ipv4/ip_default_ttl /proc/sys/kernel/msgmax",
    )  # fmt: skip
    assert shown.split() == ["33", "9000"]


def test_tmpfs(daemon: Daemon) -> None:
    script = "grep ' /t ' /proc/mounts; stat -c %a /t; cp /bin/busybox /t/ls && /t/ls / > /dev/null && echo runs"
    shown = run(daemon, "--tmpfs", "/t:size=4m,mode=1750,exec", script=script)
    line, mode, last = shown.splitlines()
    assert "size=4096k" in line and "nosuid" in line and "nodev" in line and "noexec" not in line
    assert (mode, last) == ("1750", "runs")
    assert "noexec" in run(daemon, "--tmpfs", "/t", script="grep ' /t ' /proc/mounts")


def test_a_tmpfs_is_shared_where_it_is_asked_to_be(daemon: Daemon) -> None:
    script = "grep ' /t ' /proc/self/mountinfo"
    assert " shared:" in run(daemon, "--tmpfs", "/t:shared,size=1m", script=script)
    for words in ("private", "rslave", "rshared,private"):
        assert "shared:" not in run(daemon, "--tmpfs", f"/t:{words}", script=script)


def test_a_tmpfs_may_replace_a_mount_whose_volume_is_made(daemon: Daemon) -> None:
    mount = ["--mount", "type=volume,source=replaced,target=/t", "--tmpfs", "/t"]
    assert " tmpfs " in run(daemon, *mount, script="grep ' /t ' /proc/mounts")
    assert daemon.docker("volume", "ls", "-qf", "name=replaced").stdout == "replaced\n"
    daemon.docker("run", "--name", "one", "-v", "/t", "busybox", "true")
    assert " tmpfs " in run(daemon, "--volumes-from", "one", "--tmpfs", "/t", script="grep ' /t ' /proc/mounts")


def test_size_of_shared_memory(daemon: Daemon) -> None:
    script = "df -k /dev/shm | tail -1 | awk '{print $2}'"
    assert run(daemon, script=script) == "65536\n"
    assert run(daemon, "--shm-size", "3m", script=script) == "3072\n"


def test_an_init_process(daemon: Daemon) -> None:
    if not json.loads(daemon.docker("info", "--format", "{{json .}}").stdout)["InitBinary"]:
        pytest.skip("this host has no init program for containers")
    assert run(daemon, "--init", script="cat /proc/1/comm").strip() in ("docker-init", "tini", "tini-static")


def test_groups(daemon: Daemon) -> None:
    shown = run(daemon, "--group-add", "users", "--group-add", "4242", script="id -G")
    assert {"100", "4242"} <= set(shown.split())
    done = daemon.docker("run", "--group-add", "nope", "busybox", "true", check=False)
    assert "unable to find group nope: no matching entries in group file" in done.stderr.lower()


@pytest.mark.parametrize("name", ["crun", "runc"])
def test_a_runtime_by_name(daemon: Daemon, name: str) -> None:
    known = json.loads(daemon.docker("info", "--format", "{{json .Runtimes}}").stdout)
    if name not in known:
        pytest.skip(f"{name} is not installed")
    daemon.docker("run", "--name", "box", "--runtime", name, "busybox", "true")
    assert inspect(daemon, "box")["HostConfig"]["Runtime"] == name
