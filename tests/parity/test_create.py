"""Fields that a create request may hold, and answers to one that may not be."""

from typing import Any

from tests.parity.differences import CLIENTS_FAULT, NEWER, STRICTER
from tests.support.parity import Difference, Engine, Pair
from tests.support.parity import told as told_by

BAD_BODIES: dict[str, object] = {
    "empty object": {},
    "no image": {"Cmd": ["true"]},
    "unknown image": {"Image": "nosuch:image"},
    "image name in capitals": {"Image": "Parity"},
    "list": [],
    "Cmd is a number": {"Image": "parity", "Cmd": 5},
    "Env is a string": {"Image": "parity", "Env": "A=B"},
    "Env without a name": {"Image": "parity", "Env": ["=x"]},
    "empty Env": {"Image": "parity", "Env": [""]},
    "entrypoint removed": {"Image": "rich", "Entrypoint": [""], "Cmd": []},
    "relative work dir": {"Image": "parity", "WorkingDir": "relative"},
    "bad stop signal": {"Image": "parity", "StopSignal": "SIGNOPE"},
    "bad port": {"Image": "parity", "ExposedPorts": {"x/tcp": {}}},
    "bad protocol": {"Image": "parity", "ExposedPorts": {"80/foo": {}}},
    "hostname too odd": {"Image": "parity", "Hostname": "a b"},
    "health interval too small": {"Image": "parity", "Healthcheck": {"Test": ["CMD", "true"], "Interval": 5}},
    "negative health retries": {"Image": "parity", "Healthcheck": {"Test": ["CMD", "true"], "Retries": -1}},
    "unknown health test": {"Image": "parity", "Healthcheck": {"Test": ["SOMETIMES", "true"]}},
    "negative stop timeout": {"Image": "parity", "StopTimeout": -5},
    "Volumes with a relative path": {"Image": "parity", "Volumes": {"relative": {}}},
}

# No unknown log or volume driver among them: dockerd looks 15 seconds for a plugin of that name.
BAD_HOST_CONFIGS: dict[str, dict[str, Any]] = {
    "memory too small": {"Memory": 1000},
    "swap without memory": {"MemorySwap": 64 << 20},
    "swap below memory": {"Memory": 64 << 20, "MemorySwap": 32 << 20},
    "reservation above memory": {"Memory": 64 << 20, "MemoryReservation": 128 << 20},
    "reservation too small": {"MemoryReservation": 10},
    "swappiness": {"MemorySwappiness": 200},
    "cpus and quota": {"NanoCpus": 10**9, "CpuQuota": 1000},
    "too many cpus": {"NanoCpus": 10**12},
    "negative cpus": {"NanoCpus": -1},
    "cpu period": {"CpuPeriod": 1},
    "cpu quota": {"CpuQuota": 1},
    "cpuset": {"CpusetCpus": "a"},
    "cpuset not there": {"CpusetCpus": "999"},
    "mems not there": {"CpusetMems": "99"},
    "blkio weight": {"BlkioWeight": 5},
    "restart policy": {"RestartPolicy": {"Name": "maybe"}},
    "restart count": {"RestartPolicy": {"Name": "always", "MaximumRetryCount": 2}},
    "negative restart count": {"RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": -1}},
    "restart and remove": {"RestartPolicy": {"Name": "always"}, "AutoRemove": True},
    "bind without target": {"Binds": ["/etc"]},
    "bind relative target": {"Binds": ["/etc:relative"]},
    "bind to root": {"Binds": ["/etc:/"]},
    "bind with a bad mode": {"Binds": ["/etc:/x:odd"]},
    "bind twice": {"Binds": ["/etc:/x", "/usr:/x"]},
    "bind with too many parts": {"Binds": ["/a:/b:ro:/d"]},
    "bind with a bad volume name": {"Binds": ["a/b:/x"]},
    "mount without target": {"Mounts": [{"Type": "bind", "Source": "/etc"}]},
    "mount without source": {"Mounts": [{"Type": "bind", "Target": "/x"}]},
    "mount of what is not there": {"Mounts": [{"Type": "bind", "Source": "/not/there", "Target": "/x"}]},
    "mount of unknown type": {"Mounts": [{"Type": "odd", "Target": "/x"}]},
    "tmpfs mount with a source": {"Mounts": [{"Type": "tmpfs", "Source": "/x", "Target": "/x"}]},
    "tmpfs relative": {"Tmpfs": {"x": ""}},
    "tmpfs bad option": {"Tmpfs": {"/x": "odd=1"}},
    "dns": {"Dns": ["x"]},
    "extra host": {"ExtraHosts": ["a"]},
    "extra host address": {"ExtraHosts": ["a:b"]},
    "capability": {"CapAdd": ["NOPE"]},
    "capability drop": {"CapDrop": ["CAP_NOPE"]},
    "security option": {"SecurityOpt": ["odd=1"]},
    "seccomp no json": {"SecurityOpt": ["seccomp={"]},
    "sysctl": {"Sysctls": {"kernel.hostname": "x"}},
    "sysctl net on host": {"Sysctls": {"net.ipv4.ip_forward": "1"}, "NetworkMode": "host"},
    "ulimit": {"Ulimits": [{"Name": "nosuch", "Soft": 1, "Hard": 1}]},
    "ulimit soft above hard": {"Ulimits": [{"Name": "nofile", "Soft": 10, "Hard": 1}]},
    "runtime": {"Runtime": "nosuch"},
    "log option": {"LogConfig": {"Type": "json-file", "Config": {"odd": "1"}}},
    "log max-size": {"LogConfig": {"Type": "json-file", "Config": {"max-size": "x"}}},
    "pid mode": {"PidMode": "odd"},
    "pid of nobody": {"PidMode": "container:nobody"},
    "ipc mode": {"IpcMode": "odd"},
    "ipc of nobody": {"IpcMode": "container:nobody"},
    "uts mode": {"UTSMode": "odd"},
    "userns mode": {"UsernsMode": "odd"},
    "cgroupns mode": {"CgroupnsMode": "odd"},
    "isolation": {"Isolation": "hyperv"},
    "oom score": {"OomScoreAdj": 2000},
    "shm size": {"ShmSize": -1},
    "devices": {"Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/x", "CgroupPermissions": "abc"}]},
    "device rule": {"DeviceCgroupRules": ["odd"]},
    "port binding": {"PortBindings": {"x/tcp": [{"HostPort": "1"}]}},
    "host port": {"PortBindings": {"80/tcp": [{"HostPort": "x"}]}},
    "host ip": {"PortBindings": {"80/tcp": [{"HostIp": "x", "HostPort": "1"}]}},
    "storage option": {"StorageOpt": {"odd": "1"}},
    "host network with a hostname": {"NetworkMode": "container:nobody"},
    "volumes from nobody": {"VolumesFrom": ["nobody"]},
    "volumes from with a bad mode": {"VolumesFrom": ["nobody:odd"]},
    "group": {"GroupAdd": ["nosuchgroup"]},
    "unknown network": {"NetworkMode": "nosuch"},
    "links": {"Links": ["nobody:x"]},
    "unknown field": {"Nonsense": 1},
    "wrong type": {"Memory": "1m"},
    "init with no such": {"Init": "x"},
    "console": {"ConsoleSize": [1]},
    "masked paths": {"MaskedPaths": []},
    "pids limit": {"PidsLimit": -5},
}


# name: (dockerd 20.10, Husk, why)
BODIES_DIFFER = {
    "Cmd is a number": ("500 json: *", "400 invalid json: *", CLIENTS_FAULT),
    "Env is a string": ("500 json: *", "400 invalid json: *", CLIENTS_FAULT),
    "list": ("500 json: *", "400 invalid json: *", CLIENTS_FAULT),
    "not json": ("500 unexpected eof", "400 invalid json: unexpected eof", CLIENTS_FAULT),
    "nothing": ("500 eof", "400 invalid json: got eof while reading request body", CLIENTS_FAULT),
    "more after it": ("404", "400", NEWER),
    "plain text": ("400 content-type specified *", "400 unsupported content-type header *", NEWER),
    "image name in capitals": (
        "400 invalid reference format: repository name must be lowercase",
        "400 invalid reference format: repository name (library/parity) must be lowercase",
        NEWER,
    ),
    "bad port": ("201 204", "400 invalid port specification: x/tcp", STRICTER),
    "bad protocol": ("201 204", "400 invalid port specification: 80/foo", STRICTER),
    "hostname too odd": ("201 204", "400 invalid hostname format: a b", STRICTER),
    "no image": ("201 400 <runtime>", "400 no image specified", STRICTER),
}
HOST_CONFIGS_DIFFER = {
    "unknown network": (
        "201 404 network nosuch not found",
        "201 404 failed to set up container networking: network nosuch not found",
        NEWER,
    ),
    **{
        name: ("500 *", "400 *", CLIENTS_FAULT)
        for name in (
            "bind relative target",
            "bind to root",
            "bind with a bad mode",
            "bind with too many parts",
            "isolation",
            "security option",
            "storage option",
            "wrong type",
            "init with no such",
        )
    },
    **{
        name: ("201 500 *", "400 *", STRICTER)
        for name in (
            "device rule",
            "ipc mode",
            "log max-size",
            "seccomp no json",
            "sysctl",
            "sysctl net on host",
            "tmpfs bad option",
            "ulimit",
            "ulimit soft above hard",
        )
    },
    **{
        name: ("201 204", "400 *", STRICTER)
        for name in ("devices", "dns", "host ip", "pid mode", "userns mode", "uts mode")
    },
    "blkio weight": ("201 your kernel does not support *", "400 range of blkio weight is from 10 to 1000", STRICTER),
    "group": ("201 500 unable to find group *", "201 400 unable to find group *", CLIENTS_FAULT),
    "runtime": ("400 unknown runtime specified nosuch", "400 unknown or invalid runtime name: nosuch", NEWER),
    "restart policy": ("400 invalid restart policy *", "400 invalid restart policy: unknown policy *", NEWER),
    "host network with a hostname": ("201 404 no such *", "201 400 joining network namespace of *", NEWER),
    "restart count": ("400 maximum retry count *", "400 invalid restart policy: maximum retry count *", NEWER),
    "negative restart count": ("400 maximum retry count *", "400 invalid restart policy: maximum retry count *", NEWER),
}


def differences(table: dict[str, tuple[str, str, str]]) -> list[Difference]:
    return [Difference(f"$.{name}", dockerd, husk, why) for name, (dockerd, husk, why) in table.items()]


def outcome(engine: Engine, body: object) -> str:
    """The answer to create, and if there is a container then, the answer to its start."""
    answer = engine.post("/containers/create", body)
    if answer["status"] != 201:
        return brief(answer)
    made = answer["body"]["Id"]
    started = engine.post(f"/containers/{made}/start")
    engine.remove(made)
    return " ".join(["201", *answer["body"]["Warnings"], brief(started)]).lower()


def brief(answer: dict[str, Any]) -> str:
    return f"{answer['status']} {answer['body'] and answer['body']['message'].lower()}".strip()


def test_bad_bodies(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        told: dict[str, object] = {name: outcome(engine, body) for name, body in BAD_BODIES.items()}
        told["nothing"] = brief(engine.post("/containers/create", b""))
        told["not json"] = brief(engine.post("/containers/create", b"{"))
        told["more after it"] = str(engine.post("/containers/create", b'{"Image": "nosuch"} {}')["status"])
        plain = engine.client.http("POST", "/v1.41/containers/create", b"{}", {"Content-Type": "text/plain"})
        told["plain text"] = brief(told_by(plain))
        return told

    pair.same(script, *differences(BODIES_DIFFER))


def test_bad_host_configs(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        return {
            name: outcome(engine, {"Image": "parity", "Cmd": ["true"], "HostConfig": host})
            for name, host in BAD_HOST_CONFIGS.items()
        }

    pair.same(script, *differences(HOST_CONFIGS_DIFFER))
