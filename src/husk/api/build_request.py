"""The request of `POST /build`: its parameters in the words of the engine's builder.

A classic build as the history of builds has it: `docker buildx history` and the dashboard show it beside others.
"""

import secrets
from typing import TypeVar

import msgspec

from husk.api.calls.call import Call
from husk.builder.classic.build import DOCKERFILE, ClassicRequest
from husk.builder.dockerfile.options import Options
from husk.builder.graph.operations import StepLimits, StepUlimit
from husk.builder.graph.schemes import redacted
from husk.builder.protocol.messages import control
from husk.engine.images.tag import parse_target
from husk.errors import InvalidParameter
from husk.registry.manifest import host_platform, parse_platform
from husk.text.documents import MalformedDocument, decode
from husk.text.json_faults import in_go_words

# Those that a Dockerfile knows too; others are networks that somebody has made.
OWN_NETWORKS = ("", "default", "bridge", "host", "none")

T = TypeVar("T")
FRONTEND = "dockerfile.v0"
# As long as those that buildx makes up.
_REF_BYTES = 13


class _Ulimit(msgspec.Struct, rename="pascal"):
    name: str
    soft: int
    hard: int


class Output(msgspec.Struct, rename="pascal"):
    type: str = ""  # `local`, `tar`, `image`, …
    attrs: dict[str, str] | None = None


def outputs_of(call: Call) -> list[Output]:
    try:
        found = _document(call, "outputs", list[Output])
    except InvalidParameter as error:
        raise InvalidParameter(f"invalid outputs specified: {error.message}") from None
    if len(found) > 1:
        raise InvalidParameter("multiple outputs not supported")
    return found


def request_of(call: Call) -> ClassicRequest:
    platform = call.text("platform")
    build_args = _document(call, "buildargs", dict[str, str | None])
    network = call.text("networkmode")
    if (isolation := call.text("isolation")).lower() not in ("", "default"):
        raise InvalidParameter(f'unsupported isolation: "{isolation[:100]}"')
    options = Options(
        target=call.text("target"),
        build_args={name: value for name, value in build_args.items() if value is not None},
        labels=_document(call, "labels", dict[str, str]),
        platform=parse_platform(platform) if platform else host_platform(),
        no_cache=call.flag("nocache"),
        network=network if network in OWN_NETWORKS else "",
        extra_hosts=[_host(entry) for entry in _extra_hosts(call)],
        shm_size=_positive(call, "shmsize"),
        ulimits=[StepUlimit(limit.name, limit.soft, limit.hard) for limit in _document(call, "ulimits", list[_Ulimit])],
        cgroup_parent=call.text("cgroupparent"),
        limits=StepLimits(
            memory=_positive(call, "memory"),
            memory_swap=call.integer("memswap") or 0,
            cpu_shares=_positive(call, "cpushares"),
            cpu_period=_positive(call, "cpuperiod"),
            cpu_quota=_positive(call, "cpuquota"),
            cpuset_cpus=call.text("cpusetcpus"),
            cpuset_mems=call.text("cpusetmems"),
            network="" if network in OWN_NETWORKS else network,
            security=_document(call, "securityopt", list[str]),
        ),
    )
    names = [name for text in call.query.getall("t") if (name := parse_target(text, ""))]
    return ClassicRequest(
        dockerfile=call.text("dockerfile") or DOCKERFILE,
        options=options,
        names=list(dict.fromkeys(names)),
        pull=call.flag("pull"),
        quiet=call.flag("q"),
        arguments=list(build_args),
        removes_failed=call.flag("forcerm"),
        removes=call.flag("rm") if call.text("rm") else True,
        cache_from=_document(call, "cachefrom", list[str]),
        squash=call.flag("squash"),
    )


# What dockerd calls parameters that are JSON.
_NAMES = {"buildargs": "build args", "cachefrom": "cache-from", "ulimits": "ulimit settings"}


def _document(call: Call, name: str, type: type[T]) -> T:
    """A parameter that is a JSON document; an absent one is an empty one."""
    text = call.text(name)
    if text in ("", "null"):
        return type()
    try:
        return decode(text, type)
    except MalformedDocument as error:
        told = in_go_words(text.encode(), str(error)).removeprefix("invalid JSON: ")
        raise InvalidParameter(f"error reading {_NAMES.get(name, name)}: {told}") from error


def _extra_hosts(call: Call) -> list[str]:
    """One in each parameter, or all in one as JSON."""
    values = call.query.getall("extrahosts")
    if len(values) == 1 and values[0].startswith("["):
        return _document(call, "extrahosts", list[str])
    return [value for value in values if value]


def _host(entry: str) -> tuple[str, str]:
    name, separator, address = entry.replace("=", ":", 1).partition(":")
    if not separator or not name or not address:
        raise InvalidParameter(f"invalid extra host {entry!r}: expected NAME:ADDRESS")
    return name, address


def _positive(call: Call, name: str) -> int:
    value = call.integer(name) or 0
    if value < 0:
        raise InvalidParameter(f"invalid value {value} for {name}: it cannot be negative")
    return value


def record_of(request: ClassicRequest, remote: str = "") -> control.SolveRequest:
    """In BuildKit's words, with a name of its own. `remote` is where the context comes from, if not from the client: a
    password in it is not kept."""
    options = request.options
    attributes = {
        "filename": request.dockerfile,
        "target": options.target,
        "platform": str(options.platform),
        "context": redacted(remote),
        **{f"build-arg:{name}": value for name, value in options.build_args.items()},
    }
    names = ",".join(name.familiar for name in request.names)
    return control.SolveRequest(
        ref=secrets.token_hex(_REF_BYTES)[:25],
        frontend=FRONTEND,
        frontend_attrs={name: value for name, value in attributes.items() if value},
        exporters=[control.Exporter("image", {"name": names} if names else {})],
    )
