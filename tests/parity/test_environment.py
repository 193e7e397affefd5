"""The surroundings of a process inside: environment, files, mounts, privileges, limits."""

from pathlib import Path

from tests.parity.differences import NEWER, RUNTIME
from tests.support.parity import ABSENT, Difference, Engine, Pair, lines

STATUS = "grep -E '^(Cap|NoNew|Seccomp:|Groups)' /proc/self/status"
IDENTITY = f"id; umask; pwd; env | sort; hostname; cat /etc/hostname; {STATUS}"
LIMITS = "ulimit -a; cat /proc/1/oom_score_adj /proc/sys/net/ipv4/ip_unprivileged_port_start; nproc"
NAMES = "cat /etc/hosts; grep -v '^#' /etc/resolv.conf; hostname"
TREE = "cd /dev; stat -c '%n %a %F %t %T %u %g' *; cd /; stat -c '%n %a %F' .* * /etc/mtab"
DENIED = """
mount -t tmpfs x /mnt; date -s 1; echo 1 > /proc/sys/kernel/panic; cat /proc/kcore; ls /sys/firmware; unshare -m true
swapoff -a; chroot / true && echo chroot; mknod /node c 1 3 && echo mknod; echo x > /dev/kmsg; dmesg
"""
MOUNTS = "cat /proc/self/mountinfo"
ALONE = {"NetworkMode": "none"}


def mounts(text: str) -> dict[str, bool]:
    """Mount point, type and what may not be done there; how the runtime covers things in /proc is its own affair."""
    found = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        point, options = left.split()[4:6]
        denied = [word for word in options.split(",") if word in ("ro", "nosuid", "nodev", "noexec")]
        found.append(point if point.startswith("/proc/") else f"{point} {right.split()[0]} {' '.join(denied)}")
    return dict.fromkeys(found, True)


def test_identity(pair: Pair) -> None:
    hosts: dict[str, dict[str, object]] = {
        "plain": {},
        "caps": {"CapAdd": ["NET_ADMIN"], "CapDrop": ["CHOWN"]},
        "no caps": {"CapDrop": ["ALL"]},
        "some caps": {"CapDrop": ["ALL"], "CapAdd": ["CAP_CHOWN"]},
        "no new privileges": {"SecurityOpt": ["no-new-privileges"]},
        "unconfined": {"SecurityOpt": ["seccomp=unconfined"]},
        "groups": {"GroupAdd": ["users", "1234"]},
    }

    def script(engine: Engine) -> object:
        told = {
            name: lines(engine.output("box", IDENTITY, {**ALONE, **host}, Hostname="h")) for name, host in hosts.items()
        }
        for user in ("daemon", "1:2", "1234", "nobody:users", "33"):
            told[user] = lines(engine.output("box", IDENTITY, ALONE, User=user, Hostname="h"))
        told["env"] = lines(
            engine.output("box", "env", ALONE, Hostname="h", Env=["A=1", "PATH=/bin", "HOME=/x", "TERM"])
        )
        return told

    pair.same(script)


def test_limits(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        limited = {
            **ALONE,
            "Memory": 64 << 20,
            "PidsLimit": 33,
            "CpusetCpus": "0",
            "OomScoreAdj": 7,
            "Ulimits": [{"Name": "nofile", "Soft": 100, "Hard": 200}],
            "ShmSize": 1 << 20,
        }
        look = "; df -k /dev/shm | tail -1; cat /sys/fs/cgroup/*/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max"
        return {
            "plain": lines(engine.output("box", LIMITS, ALONE)),
            "limited": lines(engine.output("box", LIMITS + look, limited)),
        }

    pair.same(script)


def test_names(pair: Pair) -> None:
    given = {"ExtraHosts": ["a:1.1.1.1"], "Dns": ["9.9.9.9"], "DnsSearch": ["x.example"], "DnsOptions": ["ndots:3"]}

    def script(engine: Engine) -> object:
        return {
            "none": lines(engine.output("box", NAMES, ALONE, Hostname="h")),
            "bridge": lines(engine.output("box", NAMES, Hostname="h")),
            "host": lines(engine.output("box", NAMES, {"NetworkMode": "host"})),
            "given": lines(engine.output("box", NAMES, given, Hostname="h")),
            "domain": lines(engine.output("box", f"{NAMES}; hostname -f", Hostname="h", Domainname="d.example")),
            "links of none": lines(engine.output("box", "ls /sys/class/net", ALONE)),
            "links of bridge": lines(engine.output("box", "ls /sys/class/net; ip route | sed 's/src.*//'")),
        }

    pair.same(
        script,
        Difference("*.f?00::0\tip6-*", True, ABSENT, "dockerd 26 writes the same addresses without the last 0"),
        Difference("*.f?00::\tip6-*", ABSENT, True, "dockerd 26 writes the same addresses without the last 0"),
    )


def test_files_and_what_is_denied(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        return {
            "tree": lines(engine.output("box", TREE, ALONE)),
            "denied": lines(engine.output("box", DENIED, ALONE)),
        }

    pair.same(script, Difference("$.tree.core *", ABSENT, True, f"{RUNTIME}: a link to /proc/kcore, which is masked"))


def test_mounts(pair: Pair) -> None:
    hosts: dict[str, dict[str, object]] = {
        "plain": {},
        "bound": {"Binds": ["/usr:/b:ro", "vol:/v"], "Tmpfs": {"/t": "size=64k"}, "ReadonlyRootfs": True},
        "shared": {"IpcMode": "host", "NetworkMode": "host", "PidMode": "host"},
        "no ipc": {"IpcMode": "none"},
    }

    def script(engine: Engine) -> object:
        told = {name: mounts(engine.output("box", MOUNTS, {**ALONE, **host})) for name, host in hosts.items()}
        engine.http("DELETE", "/volumes/vol")
        return told

    host = [each for each in mounts(Path("/proc/self/mountinfo").read_text()) if each.startswith("/dev/shm ")][-1]
    pair.same(
        script,
        Difference("*./dev/console devpts ", ABSENT, True, RUNTIME),
        Difference("*./dev/console devpts nosuid noexec", True, ABSENT, RUNTIME),
        Difference("*./proc/interrupts", ABSENT, True, NEWER),
        Difference(f"$.shared.{host}", True, ABSENT, "it is as safe as one of its own"),
        Difference("$.shared./dev/shm tmpfs nosuid nodev noexec", ABSENT, True, "it is as safe as one of its own"),
    )


def test_what_the_image_says_and_what_the_client_says(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        def run(**config: object) -> object:
            engine.start("box", "rich", **config)
            code = engine.wait("box")
            shown = engine.get("/containers/box/json")["body"]
            logs = engine.http("GET", "/containers/box/logs?stdout=1&stderr=1").body[8:].decode()
            engine.remove("box")
            return [code, logs, shown["Path"], shown["Args"], shown["Config"]]

        return {
            "nothing": run(),
            "cmd": run(Cmd=["id; pwd; env | sort | grep -v HOSTNAME"]),
            "entrypoint": run(Entrypoint=["echo"]),
            "both": run(Entrypoint=["echo"], Cmd=["x", "y"]),
            "empty entrypoint": run(Entrypoint=[], Cmd=["echo", "x"]),
            "no entrypoint": run(Entrypoint=[""], Cmd=["echo", "x"]),
            "word": run(Entrypoint="pwd"),
            "user": run(User="nobody", Cmd=["id"]),
            "health": run(Healthcheck={"Test": ["NONE"]}),
            "health interval": run(Healthcheck={"Interval": 5_000_000_000}),
            "ports": run(ExposedPorts={"81/udp": {}}, Volumes={"/more": {}}, StopSignal="INT"),
        }

    pair.same(script)
