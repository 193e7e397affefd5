"""`docker run` with limits and with files of the host: what the kernel then says."""

import json
from pathlib import Path

from tests.support.daemon import Daemon
from tests.support.running import run, sh

# --- limits, as the kernel has them


def cgroup(daemon: Daemon, options: list[str], *files: str) -> list[str]:
    """The values of cgroup files as the container sees them, by their v1 and v2 names."""
    version_2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    paths = [f"/sys/fs/cgroup/{file.split('|')[version_2]}" for file in files]
    return run(daemon, *options, "busybox", "cat", *paths).splitlines()


def test_memory_limit(daemon: Daemon):
    assert cgroup(daemon, ["-m", "32m"], "memory/memory.limit_in_bytes|memory.max") == [str(32 << 20)]


def test_memory_limit_kills(daemon: Daemon):
    daemon.docker(
        "run", "--name", "fat", "-m", "16m", "--memory-swap", "16m", "busybox", "tail", "/dev/zero", check=False
    )
    state = json.loads(daemon.docker("inspect", "fat").stdout)[0]["State"]
    assert (state["OOMKilled"], state["ExitCode"], state["Status"]) == (True, 137, "exited")


def test_cpu_limits(daemon: Daemon):
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        assert cgroup(daemon, ["--cpus", "0.5"], "|cpu.max") == ["50000 100000"]
        return
    files = ["cpu/cpu.cfs_quota_us|", "cpu/cpu.cfs_period_us|", "cpu/cpu.shares|"]
    assert cgroup(daemon, ["--cpus", "0.5", "-c", "512"], *files) == ["50000", "100000", "512"]
    assert cgroup(daemon, ["--cpu-quota", "20000", "--cpu-period", "40000"], *files)[:2] == ["20000", "40000"]


def test_cpuset(daemon: Daemon):
    assert sh(daemon, "grep Cpus_allowed_list /proc/self/status", "--cpuset-cpus", "0").split()[1] == "0"


def test_pids_limit(daemon: Daemon):
    assert cgroup(daemon, ["--pids-limit", "33"], "pids/pids.max|pids.max") == ["33"]
    script = "for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; echo all"
    done = daemon.docker("run", "--rm", "--pids-limit", "4", "busybox", "sh", "-c", script, check=False)
    assert "can't fork" in done.stderr and "all" not in done.stdout


def test_ulimit_and_shm(daemon: Daemon):
    assert sh(daemon, "ulimit -n; ulimit -Hn", "--ulimit", "nofile=100:200") == "100\n200\n"
    assert "8192" in sh(daemon, "df -k /dev/shm", "--shm-size", "8m")
    assert "65536" in sh(daemon, "df -k /dev/shm")


# --- files


def test_read_only_root(daemon: Daemon):
    script = "touch /x; touch /dev/shm/ok && echo shm; echo x > /tmp/t && echo tmp"
    done = daemon.docker("run", "--rm", "--read-only", "--tmpfs", "/tmp", "busybox", "sh", "-c", script)
    assert (done.stdout, "Read-only file system" in done.stderr) == ("shm\ntmp\n", True)


def test_tmpfs_options(daemon: Daemon):
    line = sh(daemon, "grep ' /scratch ' /proc/mounts", "--tmpfs", "/scratch:size=1m,mode=1770")
    assert {"tmpfs", "/scratch", "rw,nosuid,nodev,noexec"} <= {
        *line.split()[1:3],
        ",".join(line.split()[3].split(",")[:4]),
    }
    assert "size=1024k" in line and "mode=1770" in line


def test_mount_tmpfs(daemon: Daemon):
    line = sh(daemon, "grep ' /t ' /proc/mounts", "--mount", "type=tmpfs,target=/t,tmpfs-size=1048576,tmpfs-mode=0700")
    assert "size=1024k" in line and "mode=700" in line


def test_bind_mounts(daemon: Daemon, tmp_path: Path):
    (tmp_path / "file").write_text("from the host\n")
    assert sh(daemon, "cat /in/file; echo back > /in/answer", "-v", f"{tmp_path}:/in") == "from the host\n"
    assert (tmp_path / "answer").read_text() == "back\n"
    done = daemon.docker("run", "--rm", "-v", f"{tmp_path}:/in:ro", "busybox", "touch", "/in/no", check=False)
    assert (done.returncode, "Read-only" in done.stderr, (tmp_path / "no").exists()) == (1, True, False)
    assert run(daemon, "-v", f"{tmp_path}/file:/etc/one", "busybox", "cat", "/etc/one") == "from the host\n"


def test_a_missing_bind_source_is_made_by_v_and_refused_by_mount(daemon: Daemon, tmp_path: Path):
    sh(daemon, "touch /in/x", "-v", f"{tmp_path}/new/dir:/in")
    assert (tmp_path / "new/dir/x").exists()
    mount = f"type=bind,source={tmp_path}/none,target=/in"
    done = daemon.docker("run", "--rm", "--mount", mount, "busybox", "true", check=False)
    assert (done.returncode, "bind source path does not exist" in done.stderr) == (125, True), done.stderr
    assert not (tmp_path / "none").exists()


def test_nested_binds_in_any_order(daemon: Daemon, tmp_path: Path):
    (tmp_path / "outer").mkdir()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/f").write_text("inner\n")
    binds = ["-v", f"{tmp_path}/inner:/m/sub", "-v", f"{tmp_path}/outer:/m"]
    assert sh(daemon, "cat /m/sub/f", *binds) == "inner\n"


def test_a_link_in_the_image_does_not_lead_a_mount_to_the_host(daemon: Daemon, tmp_path: Path):
    victim = tmp_path / "victim"
    victim.mkdir()
    daemon.docker("run", "--name", "evil", "busybox", "ln", "-s", str(victim), "/trap")
    daemon.docker("commit", "evil", "evil:1")
    try:
        # Whether it is refused or made inside is the runtime's choice.
        daemon.docker("run", "--rm", "-v", f"{tmp_path}:/trap/inside", "evil:1", "true", check=False)
        assert list(victim.iterdir()) == []
    finally:
        daemon.docker("rm", "-f", "evil")
        daemon.docker("rmi", "evil:1")
