"""Containers as a Compose file: what differs from their image, in the words of Compose, and what it cannot say. Pure.

Every field of a container's configuration is read by one of the tables and functions below, or stands in `_NO_SETTING`
with its reason. A field that is in neither and says something is named as lost: also one that is newer than this.

It is written without a library: strings are JSON's, which YAML reads."""

import ipaddress
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from husk.cli.migrate.networks import OWN
from husk.text.terminals import yaml_text

Document = dict[str, Any]

# What Compose writes on containers itself.
_COMPOSE = "com.docker.compose."
_EMPTY: tuple[object, ...] = (None, "", 0, False, [], {})
_NANO = 1_000_000_000
_SHM = 64 << 20
# Settings of HostConfig that have a word in Compose and the same value there.
_SAME = {
    "Annotations": "annotations",
    "CapAdd": "cap_add",
    "CapDrop": "cap_drop",
    "CgroupParent": "cgroup_parent",
    "CpuCount": "cpu_count",
    "CpuPercent": "cpu_percent",
    "CpuPeriod": "cpu_period",
    "CpuQuota": "cpu_quota",
    "CpuRealtimePeriod": "cpu_rt_period",
    "CpuRealtimeRuntime": "cpu_rt_runtime",
    "CpuShares": "cpu_shares",
    "CpusetCpus": "cpuset",
    "DeviceCgroupRules": "device_cgroup_rules",
    "Dns": "dns",
    "DnsOptions": "dns_opt",
    "DnsSearch": "dns_search",
    "ExtraHosts": "extra_hosts",
    "GroupAdd": "group_add",
    "Init": "init",
    "Isolation": "isolation",
    "Memory": "mem_limit",
    "MemoryReservation": "mem_reservation",
    "OomKillDisable": "oom_kill_disable",
    "OomScoreAdj": "oom_score_adj",
    "PidsLimit": "pids_limit",
    "Privileged": "privileged",
    "ReadonlyRootfs": "read_only",
    "ShmSize": "shm_size",
    "StorageOpt": "storage_opt",
    "Sysctls": "sysctls",
    "UTSMode": "uts",
    "UsernsMode": "userns_mode",
}
# The same of Config: what an image may say, too.
_SAME_OF_IMAGE = {"User": "user", "WorkingDir": "working_dir", "StopSignal": "stop_signal"}
_SAME_CONFIG = {"Domainname": "domainname", "MacAddress": "mac_address", "OpenStdin": "stdin_open", "Tty": "tty"}
# Values that an engine fills in where nobody has said anything.
_USUAL = {"isolation": ("default",), "shm_size": (_SHM,), "uts": ("private",)}
# Limits of devices in Compose's `blkio_config`.
_BLKIO = {
    "BlkioDeviceReadBps": ("device_read_bps", "Rate", "rate"),
    "BlkioDeviceReadIOps": ("device_read_iops", "Rate", "rate"),
    "BlkioDeviceWriteBps": ("device_write_bps", "Rate", "rate"),
    "BlkioDeviceWriteIOps": ("device_write_iops", "Rate", "rate"),
    "BlkioWeightDevice": ("weight_device", "Weight", "weight"),
}
# Fields that are read by functions below.
_READ_CONFIG = {
    *("Cmd", "Entrypoint", "Env", "ExposedPorts", "Healthcheck", "Hostname", "Image", "Labels", "StopTimeout"),
    *_SAME_OF_IMAGE,
    *_SAME_CONFIG,
}
_READ_HOST = {
    *("BlkioWeight", "CgroupnsMode", "DeviceRequests", "Devices", "IpcMode", "LogConfig", "MaskedPaths", "MemorySwap"),
    *("MemorySwappiness", "Mounts", "NanoCpus", "NetworkMode", "PidMode", "PortBindings", "PublishAllPorts"),
    *("ReadonlyPaths", "RestartPolicy", "Runtime", "SecurityOpt", "Tmpfs", "Ulimits"),
    *_SAME,
    *_BLKIO,
}
# Fields that say nothing of the container, and why.
_NO_SETTING = {
    "ArgsEscaped": "of Windows",
    "AttachStderr": "of the client that made it",
    "AttachStdin": "of the client that made it",
    "AttachStdout": "of the client that made it",
    "Binds": "in the container's Mounts",
    "Cgroup": "no engine reads it any more",
    "ConsoleSize": "of the client that made it",
    "ContainerIDFile": "of the client that made it",
    "OnBuild": "of images that are built from its image",
    "StdinOnce": "of the client that made it",
    "VolumeDriver": "its volumes are there",
    "Volumes": "in the container's Mounts",
    "VolumesFrom": "in the container's Mounts",
}


class Surroundings(NamedTuple):
    """The two engines, as far as containers depend on them."""

    networks: Mapping[str, Sequence[str]] = {}
    """Subnets of the networks that came over, by name."""
    source: Mapping[str, Any] = {}
    """`GET /info` of the engine that has the containers: what it gives to one that asks for nothing."""
    target: Mapping[str, Any] = {}
    """`GET /info` of the engine that gets them: its log drivers and runtimes."""


class Composed(NamedTuple):
    """The file's document, and for each container the names of what it does not say."""

    document: Document
    lost: dict[str, list[str]]


def compose(containers: Sequence[Document], images: Mapping[str, Document], around: Surroundings) -> Composed:
    """Describe containers, as they are inspected, for Compose; `images` has theirs by id."""
    names = {str(each.get("Id")): _name(each) for each in containers}
    services, lost = {}, {}
    volumes: set[str] = set()
    used: set[str] = set()
    for container in containers:
        image = (images.get(str(container.get("Image"))) or {}).get("Config") or {}
        service = _Service(container, image, around, names)
        services[service.name] = found = service.written()
        if service.lost:
            lost[service.name] = sorted(set(service.lost))
        volumes |= {each["source"] for each in found.get("volumes", ()) if each["type"] == "volume"}
        used |= set(found.get("networks", ()))
    document: Document = {"services": services}
    if volumes:
        document["volumes"] = {name: {"external": True} for name in sorted(volumes)}
    if used:
        document["networks"] = {name: {"external": True} for name in sorted(used)}
    return Composed(document, lost)


def _name(container: Document) -> str:
    return str(container["Name"]).removeprefix("/")


class _Service:
    """One container on its way into the file."""

    def __init__(self, container: Document, image: Document, around: Surroundings, names: Mapping[str, str]) -> None:
        self.name = _name(container)
        self.lost: list[str] = []
        self._container, self._image, self._around, self._names = container, image, around, names
        self._config: Document = container.get("Config") or {}
        self._host: Document = container.get("HostConfig") or {}

    def written(self) -> Document:
        config, host = self._config, self._host
        found: Document = {
            "image": config.get("Image"),
            "container_name": self.name,
            **self._program(),
            "environment": [each for each in config.get("Env") or () if each not in (self._image.get("Env") or ())],
            "hostname": self._hostname(),
            "labels": self._labels(),
            "healthcheck": self._health(),
            "stop_grace_period": self._grace(),
            "restart": _restart(host.get("RestartPolicy") or {}),
            "cpus": (host.get("NanoCpus") or 0) / _NANO,
            "memswap_limit": self._swap(),
            "cgroup": self._unless_usual("CgroupnsMode", "private" if self._is_v2 else "host"),
            "runtime": self._runtime(),
            "ipc": self._shared("IpcMode", ("private", "shareable")),
            "pid": self._shared("PidMode", ("private",)),
            "security_opt": self._security(),
            "ports": list(self._ports()),
            "expose": list(self._exposed()),
            "volumes": list(self._mounts()),
            "tmpfs": [f"{path}:{options}" if options else path for path, options in (host.get("Tmpfs") or {}).items()],
            "devices": [_device(each) for each in host.get("Devices") or ()],
            "deploy": self._reservations(),
            "ulimits": {
                str(each.get("Name")): {"soft": each.get("Soft"), "hard": each.get("Hard")}
                for each in host.get("Ulimits") or ()
            },
            "blkio_config": self._blkio(),
            "logging": self._logging(),
            **self._networks(),
        }
        for key, word in _SAME.items():
            found[word] = self._unless_usual(key, *_USUAL.get(word, ()))
        for key, word in _SAME_CONFIG.items():
            found[word] = config.get(key)
        for key, word in _SAME_OF_IMAGE.items():
            found[word] = config.get(key) if config.get(key) != self._image.get(key) else None
        found = {word: value for word, value in found.items() if value not in _EMPTY}
        if (swappiness := host.get("MemorySwappiness")) not in (None, -1):
            found["mem_swappiness"] = swappiness  # none at all is 0, which is not the engine's own
        if host.get("Init") is False:
            found["init"] = False
        self._rest(config, _READ_CONFIG, self._image)
        self._rest(host, _READ_HOST, {})
        return found

    def _rest(self, document: Document, read: set[str], image: Document) -> None:
        """Name what has no word in Compose."""
        for key, value in document.items():
            if key not in read and key not in _NO_SETTING and value not in _EMPTY and value != image.get(key):
                self.lost.append(_LOST.get(key, key))

    def _program(self) -> Document:
        """Return entrypoint and command; with an entrypoint of its own the image's command is not heard."""
        entrypoint, command = (self._config.get(key) or [] for key in ("Entrypoint", "Cmd"))
        if entrypoint != (self._image.get("Entrypoint") or []):
            # An entrypoint of one empty word takes the image's away.
            return {"entrypoint": entrypoint or [""], "command": command}
        return {"command": command if command != (self._image.get("Cmd") or []) else None}

    def _hostname(self) -> str:
        name = str(self._config.get("Hostname") or "")
        return "" if str(self._container.get("Id", "")).startswith(name) else name

    def _labels(self) -> Document:
        inherited = self._image.get("Labels") or {}
        return {
            key: value
            for key, value in (self._config.get("Labels") or {}).items()
            if not key.startswith(_COMPOSE) and inherited.get(key) != value
        }

    def _health(self) -> Document:
        check, inherited = self._config.get("Healthcheck") or {}, self._image.get("Healthcheck") or {}
        if check.get("Test") == ["NONE"]:
            return {"disable": True} if inherited.get("Test") != ["NONE"] else {}
        written: dict[str, tuple[str, Callable[[Any], Any]]] = {
            "Test": ("test", list),
            "Interval": ("interval", _duration),
            "Timeout": ("timeout", _duration),
            "StartPeriod": ("start_period", _duration),
            "StartInterval": ("start_interval", _duration),
            "Retries": ("retries", int),
        }
        self.lost += [f"Healthcheck.{key}" for key, value in check.items() if key not in written and value]
        return {
            word: write(check[key])
            for key, (word, write) in written.items()
            if check.get(key) and check[key] != inherited.get(key)
        }

    def _grace(self) -> str:
        seconds = self._config.get("StopTimeout")
        if seconds is not None and seconds < 0:
            self.lost.append("stop_grace_period without an end")
            return ""
        return "" if seconds is None else f"{seconds}s"

    def _swap(self) -> int:
        """Tell the limit of memory and swap; an engine that is told no other takes twice the memory."""
        swap, memory = self._host.get("MemorySwap") or 0, self._host.get("Memory") or 0
        return 0 if swap == 2 * memory else int(swap)

    @property
    def _is_v2(self) -> bool:
        return str(self._around.source.get("CgroupVersion", "2")) == "2"

    def _unless_usual(self, key: str, *usual: object) -> Any:
        value = self._host.get(key)
        return None if value in usual else value

    def _runtime(self) -> str:
        name = str(self._host.get("Runtime") or "")
        # Podman calls whichever it takes `oci`.
        usual = (str(self._around.source.get("DefaultRuntime") or "runc"), "oci")
        known = self._around.target.get("Runtimes")
        if name and name not in usual and known is not None and name not in known:
            self.lost.append(f"runtime {name}")
            return ""
        return "" if name in usual else name

    def _shared(self, key: str, usual: Sequence[str]) -> str:
        """Return a namespace: one that is shared with a container of this file is that service's."""
        mode = str(self._host.get(key) or "")
        kind, _, other = mode.partition(":")
        if kind != "container":
            return "" if mode in usual else mode
        return self._of_other(other) or mode

    def _of_other(self, identity: str) -> str:
        other = self._names.get(identity) or (identity if identity in self._names.values() else "")
        return f"service:{other}" if other else ""

    def _security(self) -> list[str]:
        found = list(self._host.get("SecurityOpt") or ())
        bare = self._host.get("MaskedPaths") == [] and self._host.get("ReadonlyPaths") == []
        return [*found, "systempaths=unconfined"] if bare and not self._host.get("Privileged") else found

    def _ports(self) -> Iterator[str]:
        bindings = self._host.get("PortBindings") or {}
        for inside, outside in bindings.items():
            for each in outside or ():
                address = str(each.get("HostIp") or "")
                where = f"[{address}]:" if ":" in address else f"{address}:" if address not in ("", "0.0.0.0") else ""
                port = str(each.get("HostPort") or "")
                yield f"{where}{port}:{inside}" if port or where else inside
        if self._host.get("PublishAllPorts"):
            exposed = {**(self._image.get("ExposedPorts") or {}), **(self._config.get("ExposedPorts") or {})}
            yield from (port for port in exposed if port not in bindings)

    def _exposed(self) -> Iterator[str]:
        published = self._host.get("PortBindings") or {}
        for port in self._config.get("ExposedPorts") or {}:
            if port not in (self._image.get("ExposedPorts") or {}) and port not in published:
                yield port

    def _mounts(self) -> Iterator[Document]:
        asked = {str(each.get("Target")): each for each in self._host.get("Mounts") or ()}
        for mount in self._container.get("Mounts") or ():
            target = str(mount.get("Destination"))
            yield from self._mount(mount, asked.pop(target, {}))
        for wish in asked.values():  # those in memory are told of nowhere else by some engines
            yield from self._mount({"Type": wish.get("Type"), "Destination": wish.get("Target")}, wish)

    def _mount(self, mount: Document, wish: Document) -> Iterator[Document]:
        kind, target = mount.get("Type"), mount.get("Destination")
        if kind == "tmpfs" and not wish:
            return  # in Tmpfs
        write = {"bind": self._bind, "volume": self._volume, "tmpfs": self._memory, "image": self._of_image}.get(
            str(kind)
        )
        if write is None:
            self.lost.append(f"the {kind} mount at {target}")
            return
        source = {"volume": mount.get("Name"), "tmpfs": None}.get(str(kind), mount.get("Source") or wish.get("Source"))
        found: Document = {"type": kind, "source": source, "target": target}
        found["read_only"] = not mount.get("RW", True) or bool(wish.get("ReadOnly"))
        found["consistency"] = wish.get("Consistency")
        found[str(kind)] = {word: value for word, value in write(mount, wish).items() if value not in _EMPTY}
        yield {word: value for word, value in found.items() if value not in _EMPTY}

    def _bind(self, mount: Document, wish: Document) -> Document:
        options = wish.get("BindOptions") or {}
        propagation = options.get("Propagation") or mount.get("Propagation")
        recursive = {
            "disabled": options.get("NonRecursive"),
            "writable": options.get("ReadOnlyNonRecursive"),
            "readonly": options.get("ReadOnlyForceRecursive"),
        }
        return {
            "propagation": propagation if propagation != "rprivate" else None,
            "create_host_path": options.get("CreateMountpoint"),
            "recursive": next((word for word, said in recursive.items() if said), None),
            "selinux": next((each for each in str(mount.get("Mode") or "").split(",") if each in ("z", "Z")), None),
        }

    def _volume(self, mount: Document, wish: Document) -> Document:
        """Return options of a volume. It is there already: its own labels and driver are not the mount's to say."""
        options = wish.get("VolumeOptions") or {}
        nocopy = options.get("NoCopy") or "nocopy" in str(mount.get("Mode") or "").split(",")
        return {"nocopy": nocopy, "subpath": options.get("Subpath")}

    def _memory(self, mount: Document, wish: Document) -> Document:
        options = wish.get("TmpfsOptions") or {}
        if options.get("Options"):
            self.lost.append(f"options of the tmpfs at {mount.get('Destination')}")
        return {"size": options.get("SizeBytes"), "mode": options.get("Mode")}

    def _of_image(self, mount: Document, wish: Document) -> Document:
        return {"subpath": (wish.get("ImageOptions") or {}).get("Subpath")}

    def _reservations(self) -> Document:
        devices = []
        for each in self._host.get("DeviceRequests") or ():
            wanted = each.get("Capabilities") or [[]]
            if len(wanted) > 1:
                self.lost.append("DeviceRequests with alternatives")
                continue
            count = each.get("Count")
            device = {
                "driver": each.get("Driver"),
                "count": "all" if count == -1 else count,
                "device_ids": each.get("DeviceIDs"),
                "capabilities": wanted[0],
                "options": each.get("Options"),
            }
            devices.append({word: value for word, value in device.items() if value not in _EMPTY})
        return {"resources": {"reservations": {"devices": devices}}} if devices else {}

    def _blkio(self) -> Document:
        found: Document = {"weight": self._host.get("BlkioWeight")}
        for key, (word, amount, said) in _BLKIO.items():
            found[word] = [{"path": each.get("Path"), said: each.get(amount)} for each in self._host.get(key) or ()]
        return {word: value for word, value in found.items() if value not in _EMPTY}

    def _logging(self) -> Document:
        log = self._host.get("LogConfig") or {}
        driver, options = str(log.get("Type") or ""), log.get("Config") or {}
        if not options and driver in ("", str(self._around.source.get("LoggingDriver") or "json-file")):
            return {}
        known = (self._around.target.get("Plugins") or {}).get("Log")
        if driver and known is not None and driver not in known:
            self.lost.append(f"log driver {driver}")
            return {}
        return {"driver": driver, **({"options": options} if options else {})}

    def _networks(self) -> Document:
        mode = str(self._host.get("NetworkMode") or "")
        if mode in ("host", "none"):
            return {"network_mode": mode}
        if mode.startswith("container:"):
            return {"network_mode": self._of_other(mode.partition(":")[2]) or mode}
        endpoints = ((self._container.get("NetworkSettings") or {}).get("Networks")) or {}
        found: Document = {}
        for name, endpoint in endpoints.items():
            if name in OWN:
                continue
            if name not in self._around.networks:
                self.lost.append(f"network {name}")
                continue
            found[name] = self._endpoint(name, endpoint or {})
        if not found:
            return {"network_mode": "bridge"}
        if "bridge" in endpoints:
            self.lost.append("network bridge, beside others")
        return {"networks": found}

    def _endpoint(self, network: str, endpoint: Document) -> Document:
        own = (self.name, str(self._container.get("Id", ""))[:12])
        wished = endpoint.get("IPAMConfig") or {}
        if endpoint.get("Links"):
            self.lost.append(_LOST["Links"])
        found = {
            "aliases": [each for each in endpoint.get("Aliases") or () if each not in own],
            "ipv4_address": self._address(network, wished.get("IPv4Address")),
            "ipv6_address": self._address(network, wished.get("IPv6Address")),
            "link_local_ips": wished.get("LinkLocalIPs"),
            "driver_opts": endpoint.get("DriverOpts"),
            "gw_priority": endpoint.get("GwPriority"),
        }
        return {word: value for word, value in found.items() if value not in _EMPTY}

    def _address(self, network: str, address: str | None) -> str:
        """Return an address of its own, which the network that came over may not have."""
        if not address:
            return ""
        if any(_within(address, subnet) for subnet in self._around.networks[network]):
            return address
        self.lost.append(f"address {address}, which network {network} does not have here")
        return ""


# What is lost, in words that people know it by.
_LOST = {"AutoRemove": "--rm", "CpusetMems": "--cpuset-mems", "Links": "links", "NetworkDisabled": "network_disabled"}


def _within(address: str, subnet: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(subnet, strict=False)
    except ValueError:
        return False


def _duration(nanoseconds: int) -> str:
    return f"{nanoseconds // _NANO}s" if nanoseconds % _NANO == 0 else f"{nanoseconds}ns"


def _restart(policy: Document) -> str:
    name, times = str(policy.get("Name") or ""), policy.get("MaximumRetryCount") or 0
    if name == "on-failure" and times:
        return f"{name}:{times}"
    return "" if name == "no" else name


def _device(device: Document) -> str:
    words = (device.get("PathOnHost"), device.get("PathInContainer"), device.get("CgroupPermissions"))
    return ":".join(str(word) for word in words if word)


def written(document: Document) -> str:
    """As YAML. A dollar sign is doubled, for Compose puts in variables otherwise."""
    return "\n".join(_lines(document, 0)) + "\n"


def _lines(value: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(value, dict):
        for key, each in value.items():
            name = json.dumps(str(key))
            if isinstance(each, dict | list) and each:
                yield f"{indent}{name}:"
                yield from _lines(each, depth + 1)
            else:
                yield f"{indent}{name}: {_plain(each)}"
    else:
        for each in value:
            if isinstance(each, dict) and each:
                first, *others = _lines(each, depth + 1)
                yield f"{indent}- {first.lstrip()}"
                yield from others
            else:
                yield f"{indent}- {_plain(each)}"


def _plain(value: Any) -> str:
    return yaml_text(json.dumps(value, ensure_ascii=False)).replace("$", "$$")
