"""Containers as a Compose file: what differs from their image, in the words of Compose. Pure.

It is written without a library: strings are JSON's, which YAML reads."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from husk.cli.migrate.networks import OWN

Document = dict[str, Any]

# What Compose writes on containers itself.
_COMPOSE = "com.docker.compose."
# Settings of HostConfig that have a word in Compose and the same value there.
_SAME = {
    "CapAdd": "cap_add",
    "CapDrop": "cap_drop",
    "Dns": "dns",
    "DnsSearch": "dns_search",
    "ExtraHosts": "extra_hosts",
    "GroupAdd": "group_add",
    "IpcMode": "ipc",
    "Memory": "mem_limit",
    "MemoryReservation": "mem_reservation",
    "PidMode": "pid",
    "PidsLimit": "pids_limit",
    "Privileged": "privileged",
    "ReadonlyRootfs": "read_only",
    "SecurityOpt": "security_opt",
    "Sysctls": "sysctls",
    "UTSMode": "uts",
}
_USUAL = {"ipc": ("private", "shareable"), "pid": ("private",), "uts": ("private",)}


def compose(containers: Sequence[Document], images: Mapping[str, Document], networks: Sequence[str]) -> Document:
    """The file's document: of containers and their images (by id) as they are inspected, and the names of networks
    that came over."""
    services = {}
    volumes: set[str] = set()
    used: set[str] = set()
    for container in containers:
        name = str(container["Name"]).removeprefix("/")
        service = _service(container, (images.get(str(container.get("Image"))) or {}).get("Config") or {}, networks)
        services[name] = service
        volumes |= {each["source"] for each in service.get("volumes", ()) if each["type"] == "volume"}
        used |= set(service.get("networks", ()))
    document: Document = {"services": services}
    if volumes:
        document["volumes"] = {name: {"external": True} for name in sorted(volumes)}
    if used:
        document["networks"] = {name: {"external": True} for name in sorted(used)}
    return document


def _service(container: Document, image: Document, networks: Sequence[str]) -> Document:
    config, host = container.get("Config") or {}, container.get("HostConfig") or {}
    name = str(container["Name"]).removeprefix("/")
    inherited = set(image.get("Env") or ())
    labels = image.get("Labels") or {}
    found: Document = {
        "image": config.get("Image"),
        "container_name": name,
        "entrypoint": _other(config.get("Entrypoint"), image.get("Entrypoint")),
        "command": _other(config.get("Cmd"), image.get("Cmd")),
        "environment": [each for each in config.get("Env") or () if each not in inherited],
        "user": _other(config.get("User"), image.get("User")),
        "working_dir": _other(config.get("WorkingDir"), image.get("WorkingDir")),
        "hostname": _hostname(container, config),
        "labels": {
            key: value
            for key, value in (config.get("Labels") or {}).items()
            if not key.startswith(_COMPOSE) and labels.get(key) != value
        },
        "tty": config.get("Tty"),
        "stdin_open": config.get("OpenStdin"),
        "stop_signal": _other(config.get("StopSignal"), image.get("StopSignal")),
        "restart": _restart(host.get("RestartPolicy") or {}),
        "cpus": (host.get("NanoCpus") or 0) / 1e9,
        "init": host.get("Init"),
        "ports": list(_ports(host.get("PortBindings") or {})),
        "volumes": list(_mounts(container.get("Mounts") or ())),
        "tmpfs": list(_tmpfs(host.get("Tmpfs") or {})),
        "devices": [_device(each) for each in host.get("Devices") or ()],
        **_networks(container, host, networks),
    }
    for key, word in _SAME.items():
        value = host.get(key)
        if value not in _USUAL.get(word, ()):
            found[word] = value
    return {word: value for word, value in found.items() if value not in (None, "", 0, False, [], {})}


def _other(value: Any, of_image: Any) -> Any:
    """A setting that is not the image's."""
    return value if value != of_image else None


def _hostname(container: Document, config: Document) -> str:
    name = str(config.get("Hostname") or "")
    return "" if str(container.get("Id", "")).startswith(name) else name


def _restart(policy: Document) -> str:
    name, times = str(policy.get("Name") or ""), policy.get("MaximumRetryCount") or 0
    if name == "on-failure" and times:
        return f"{name}:{times}"
    return "" if name == "no" else name


def _ports(bindings: Document) -> Iterator[str]:
    for inside, outside in bindings.items():
        for each in outside or ():
            address = str(each.get("HostIp") or "")
            where = f"[{address}]:" if ":" in address else f"{address}:" if address not in ("", "0.0.0.0") else ""
            port = str(each.get("HostPort") or "")
            yield f"{where}{port}:{inside}" if port or where else inside


def _mounts(mounts: Sequence[Document]) -> Iterator[Document]:
    for mount in mounts:
        kind = mount.get("Type")
        if kind not in ("bind", "volume"):
            continue
        source = mount.get("Name") if kind == "volume" else mount.get("Source")
        found = {"type": kind, "source": source, "target": mount.get("Destination")}
        yield found if mount.get("RW", True) else {**found, "read_only": True}


def _tmpfs(found: Document) -> Iterator[str]:
    for path, options in found.items():
        yield f"{path}:{options}" if options else path


def _device(device: Document) -> str:
    words = (device.get("PathOnHost"), device.get("PathInContainer"), device.get("CgroupPermissions"))
    return ":".join(str(word) for word in words if word)


def _networks(container: Document, host: Document, known: Sequence[str]) -> Document:
    mode = str(host.get("NetworkMode") or "")
    if mode in ("host", "none") or mode.startswith("container:"):
        return {"network_mode": mode}
    endpoints = ((container.get("NetworkSettings") or {}).get("Networks")) or {}
    found: Document = {}
    for name, endpoint in endpoints.items():
        if name in OWN or name not in known:
            continue
        identity = str(container.get("Id", ""))
        own = (str(container["Name"]).removeprefix("/"), identity[:12])
        aliases = [each for each in (endpoint or {}).get("Aliases") or () if each not in own]
        found[name] = {"aliases": aliases} if aliases else {}
    return {"networks": found} if found else {"network_mode": "bridge"}


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
    return json.dumps(value, ensure_ascii=False).replace("$", "$$")
