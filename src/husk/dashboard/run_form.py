"""The form that runs a container: what it says, as the client wants it, as `docker run` and as a Compose file. Pure.

Lists are text with one entry a line, as people paste them: `8080:80`, `NAME=value`, `data:/var/lib/data:ro`.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from husk.api.http.request import Query
from husk.client.spec import ContainerSpec, size
from husk.errors import InvalidParameter
from husk.text.terminals import yaml_text

RESTARTS = ("no", "on-failure", "unless-stopped", "always")
_PORT = re.compile(
    r"(?:(?P<address>\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]):)?(?:(?P<host>\d{1,5})?:)?(?P<inside>\d{1,5}(?:/(?:tcp|udp|sctp))?)"
)
# Labels by which Compose and the swarm know what is theirs: a copy is not.
_OF_OTHERS = ("com.docker.compose.", "com.docker.swarm.", "com.docker.stack.")
_LAST_PORT = 65535
_FLAGS = ("init", "read_only", "auto_remove", "tty")
# Of a container that is copied: settings that the form has a field for, and those that change nothing by themselves.
_KNOWN = {
    "Binds", "PortBindings", "NetworkMode", "RestartPolicy", "Memory", "NanoCpus", "Init", "ReadonlyRootfs",
    "AutoRemove", "LogConfig", "Runtime", "ShmSize", "IpcMode", "CgroupnsMode", "ConsoleSize", "MaskedPaths",
    "ReadonlyPaths", "MemorySwap", "MemorySwappiness", "Isolation", "ContainerIDFile",
}  # fmt: skip


class RunForm(msgspec.Struct, frozen=True, kw_only=True):
    """The fields, as somebody wrote them."""

    image: str = ""
    name: str = ""
    command: str = ""
    ports: str = ""
    environment: str = ""
    volumes: str = ""
    labels: str = ""
    network: str = ""
    restart: str = "no"
    memory: str = ""
    cpus: str = ""
    user: str = ""
    working_dir: str = ""
    hostname: str = ""
    init: bool = False
    read_only: bool = False
    auto_remove: bool = False
    tty: bool = False

    @classmethod
    def read(cls, form: Query) -> "RunForm":
        texts = {
            name: form.get(name).replace("\r\n", "\n").strip() for name in cls.__struct_fields__ if name not in _FLAGS
        }
        texts["restart"] = texts["restart"] or "no"
        return msgspec.convert({**texts, **{name: name in form for name in _FLAGS}}, cls)

    def spec(self) -> ContainerSpec:
        """The container as the client takes it. InvalidParameter says which field cannot be understood."""
        if not self.image:
            raise InvalidParameter("which image? Give a name such as busybox or registry.example/app:1")
        if self.restart not in RESTARTS:
            raise InvalidParameter(f"restart: {self.restart!r} is none of {', '.join(RESTARTS)}")
        if self.auto_remove and self.restart != "no":
            raise InvalidParameter("a container that is removed at its end cannot be restarted: choose one of the two")
        size(self.memory or 0)
        return ContainerSpec(
            image=self.image,
            name=self.name,
            command=self._words(),
            ports=self._ports(),
            environment=_pairs("environment", self.environment, bare=True),
            volumes=_lines(self.volumes),
            labels=dict(each.partition("=")[::2] for each in _pairs("labels", self.labels)),
            network=self.network,
            restart="" if self.restart == "no" else self.restart,
            memory=self.memory or 0,
            cpus=self._cpus(),
            user=self.user,
            working_dir=self.working_dir,
            hostname=self.hostname,
            init=self.init or None,
            read_only=self.read_only,
            auto_remove=self.auto_remove,
            tty=self.tty,
            stdin=False,
        )

    def docker_run(self) -> str:
        """The same by hand: lines for a shell."""
        parts: list[Sequence[str]] = [("--name", self.name)] if self.name else []
        parts += [("-p", each) for each in _lines(self.ports)]
        parts += [("-e", each) for each in _lines(self.environment)]
        parts += [("-v", each) for each in _lines(self.volumes)]
        parts += [("-l", each) for each in _lines(self.labels)]
        for option, value in (
            ("--network", self.network), ("--restart", "" if self.restart == "no" else self.restart),
            ("-m", self.memory), ("--cpus", self.cpus), ("-u", self.user), ("-w", self.working_dir),
            ("-h", self.hostname),
        ):  # fmt: skip
            if value:
                parts.append((option, value))
        flags = (("--init", self.init), ("--read-only", self.read_only), ("--rm", self.auto_remove), ("-t", self.tty))
        parts += [(flag,) for flag, is_set in flags if is_set]
        last = (self.image or "IMAGE", *(self._words() or ()))
        lines = ["docker run -d", *(shlex.join(part) for part in parts), shlex.join(last)]
        return " \\\n    ".join(lines)

    def compose(self) -> str:
        """The same as a Compose file. Values are quoted as JSON has it, which is YAML as well."""
        service: dict[str, Any] = {
            "image": self.image or "IMAGE", "container_name": self.name, "command": self._words(),
            "ports": _lines(self.ports), "environment": _lines(self.environment), "volumes": _lines(self.volumes),
            "labels": _lines(self.labels),
            "network_mode": self.network if self.network in ("host", "none", "bridge") else "",
            "networks": [self.network] if self.network and self.network not in ("host", "none", "bridge") else [],
            "restart": "" if self.restart == "no" else self.restart, "mem_limit": self.memory, "cpus": self.cpus,
            "user": self.user, "working_dir": self.working_dir, "hostname": self.hostname, "init": self.init,
            "read_only": self.read_only, "tty": self.tty,
        }  # fmt: skip
        lines = ["services:", f"  {_service_name(self)}:"]
        for key, value in service.items():
            if isinstance(value, list) and value:
                lines += [f"    {key}:", *(f"      - {_in_compose(each)}" for each in value)]
            elif value:
                lines.append(f"    {key}: {_in_compose(value)}")
        named = [each.partition(":")[0] for each in _lines(self.volumes) if ":" in each]
        volumes = [each for each in named if not each.startswith(("/", ".", "~"))]
        outer = {"volumes": volumes, "networks": service["networks"]}
        for key, names in outer.items():
            if names:
                lines += [f"{key}:", *(f"  {json.dumps(each)}:\n    external: true" for each in dict.fromkeys(names))]
        return "\n".join(lines)

    def _words(self) -> list[str] | None:
        try:
            return shlex.split(self.command) or None
        except ValueError as error:
            raise InvalidParameter(f"command: {error}") from None

    def _cpus(self) -> float:
        if not self.cpus:
            return 0.0
        if not re.fullmatch(r"\d{1,6}(\.\d{1,9})?", self.cpus):
            raise InvalidParameter(f"processors: {self.cpus!r} is no number such as 1.5")
        return float(self.cpus)

    def _ports(self) -> dict[str | int, list[Any]]:
        found: dict[str | int, list[Any]] = {}
        for line in _lines(self.ports):
            match = _PORT.fullmatch(line)
            if match is None or max(int(match["host"] or 0), int(match["inside"].partition("/")[0])) > _LAST_PORT:
                raise InvalidParameter(f"ports: {line!r} is none: expected for example 8080:80 or 127.0.0.1:53:53/udp")
            address = (match["address"] or "").strip("[]")
            host = int(match["host"]) if match["host"] else None
            found.setdefault(match["inside"], []).append((address, host) if address else host)
        return found


def copied(container: Mapping[str, Any], image: Mapping[str, Any] | None) -> tuple[RunForm, list[str]]:
    """The form of a container that is there, and the names of its settings that the form has no field for.

    What comes from its image is left to the image.
    """
    config, host = container.get("Config") or {}, container.get("HostConfig") or {}
    made = (image or {}).get("Config") or {}
    own = [each for each in config.get("Env") or () if each not in (made.get("Env") or ())]
    labels = {
        key: value
        for key, value in (config.get("Labels") or {}).items()
        if (made.get("Labels") or {}).get(key) != value and not key.startswith(_OF_OTHERS)
    }
    command = config.get("Cmd") if config.get("Cmd") != made.get("Cmd") else None
    policy = host.get("RestartPolicy") or {}
    name = str(config.get("Hostname") or "")
    form = RunForm(
        image=str(config.get("Image") or ""),
        name=f"{str(container.get('Name') or '').lstrip('/')}-copy",
        command=shlex.join(command or ()),
        ports="\n".join(_published(host.get("PortBindings") or {})),
        environment="\n".join(own),
        volumes="\n".join([*(host.get("Binds") or ()), *_named_mounts(host.get("Mounts") or ())]),
        labels="\n".join(f"{key}={value}" for key, value in labels.items()),
        network="" if host.get("NetworkMode") in (None, "", "default", "bridge") else str(host["NetworkMode"]),
        restart=str(policy.get("Name") or "no"),
        memory=str(host.get("Memory") or ""),
        cpus=f"{host['NanoCpus'] / 1e9:g}" if host.get("NanoCpus") else "",
        user=str(config.get("User") or "") if config.get("User") != made.get("User") else "",
        working_dir=str(config.get("WorkingDir") or "") if config.get("WorkingDir") != made.get("WorkingDir") else "",
        hostname="" if str(container.get("Id") or "").startswith(name) else name,
        init=bool(host.get("Init")),
        read_only=bool(host.get("ReadonlyRootfs")),
        auto_remove=bool(host.get("AutoRemove")),
        tty=bool(config.get("Tty")),
    )
    left = [each for each, value in host.items() if value and each not in _KNOWN and each != "Mounts"]
    left += ["Mounts"] if any(not _is_simple(each) for each in host.get("Mounts") or ()) else []
    left += ["Entrypoint"] if config.get("Entrypoint") != made.get("Entrypoint") else []
    left += ["Healthcheck"] if config.get("Healthcheck") != made.get("Healthcheck") else []
    left += ["MaximumRetryCount"] if policy.get("MaximumRetryCount") else []
    return form, sorted(left)


def _published(bindings: Mapping[str, Sequence[Mapping[str, str]] | None]) -> Iterable[str]:
    for inside, bound in bindings.items():
        for each in bound or ({},):
            address = each.get("HostIp") or ""
            shown = f"[{address}]:" if ":" in address else f"{address}:" if address else ""
            host = each.get("HostPort") or ""
            yield f"{shown}{host}{':' if host or shown else ''}{inside.removesuffix('/tcp')}"


def _named_mounts(mounts: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for each in filter(_is_simple, mounts):
        yield f"{each.get('Source')}:{each.get('Target')}{':ro' if each.get('ReadOnly') else ''}"


def _is_simple(mount: Mapping[str, Any]) -> bool:
    return set(mount) <= {"Type", "Source", "Target", "ReadOnly"} and mount.get("Type") in ("bind", "volume")


def _in_compose(value: object) -> str:
    """A value for a Compose file. A dollar sign is doubled, for Compose puts in variables otherwise."""
    return yaml_text(json.dumps(value, ensure_ascii=False)).replace("$", "$$")


def _lines(text: str) -> list[str]:
    return [each.strip() for each in text.split("\n") if each.strip()]


def _pairs(field: str, text: str, *, bare: bool = False) -> list[str]:
    found = _lines(text)
    for each in found:
        if each.startswith("=") or ("=" not in each and not bare):
            raise InvalidParameter(f"{field}: {each!r} is none: expected NAME=value")
    return found


def _service_name(form: RunForm) -> str:
    name = form.name or form.image.rpartition("/")[2].partition(":")[0].partition("@")[0]
    return re.sub(r"[^a-zA-Z0-9._-]", "-", name) or "app"
