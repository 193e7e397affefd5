"""`POST /build`: the classic builder of the API, with a context as the body and lines of text as the answer."""

import base64
import binascii
import json
from typing import TypeVar

import msgspec

from husk.api.call import Call
from husk.api.feed import stream_progress
from husk.api.http.response import Answer
from husk.api.router import Route, stream
from husk.engine.builder.classic import DOCKERFILE, ClassicRequest, Report
from husk.engine.builder.dockerfile.options import Options
from husk.engine.builder.image_source import credentials_in
from husk.engine.builder.operations import Limits, Ulimit
from husk.engine.images.tag import parse_target
from husk.engine.model.image import Built, Progress
from husk.errors import InvalidParameter, NotImplementedYet
from husk.registry.auth import Credentials, credentials_from
from husk.registry.manifest import host_platform, parse_platform

CONFIG_HEADER = "x-registry-config"
# Those that a Dockerfile knows too; others are networks that somebody has made.
OWN_NETWORKS = ("", "default", "bridge", "host", "none")
_CHUNK = 1 << 20

T = TypeVar("T")


class _Ulimit(msgspec.Struct, rename="pascal"):
    name: str
    soft: int
    hard: int


async def build(call: Call) -> Answer:
    _refuse_what_is_missing(call)
    request = _request(call)
    credentials = credentials_in(_credentials(call))

    async def work(report: Report) -> None:
        builder = await call.engine.builder.get()
        if remote := call.text("remote"):
            image = await builder.build_remote(request, remote, credentials, report)
        else:
            image = await builder.build_upload(request, call.upload(_CHUNK), credentials, report)
        if request.quiet:
            report(Progress(stream=f"{image.id}\n"))
            return
        report(Progress(aux=Built(id=image.id)))
        report(Progress(stream=f"Successfully built {image.id.removeprefix('sha256:')[:12]}\n"))
        for name in request.names:
            report(Progress(stream=f"Successfully tagged {name.familiar}\n"))

    return await stream_progress(call, work, "build")


def _refuse_what_is_missing(call: Call) -> None:
    if call.text("version") == "2":
        raise NotImplementedYet(
            "builds by BuildKit's protocol are not implemented by Husk yet: use version 1 of /build"
        )
    if call.flag("squash"):
        raise InvalidParameter("squash is only supported with experimental mode")
    if call.text("outputs") not in ("", "[]", "null"):
        raise NotImplementedYet("outputs of a build are not implemented by Husk yet")
    if call.text("cachefrom") not in ("", "[]", "null"):
        _document(call, "cachefrom", list[str])  # images here are found by the cache anyway


def _request(call: Call) -> ClassicRequest:
    platform = call.text("platform")
    build_args = _document(call, "buildargs", dict[str, str | None])
    network = call.text("networkmode")
    options = Options(
        target=call.text("target"),
        build_args={name: value for name, value in build_args.items() if value is not None},
        labels=_document(call, "labels", dict[str, str]),
        platform=parse_platform(platform) if platform else host_platform(),
        no_cache=call.flag("nocache"),
        network=network if network in OWN_NETWORKS else "",
        extra_hosts=[_host(entry) for entry in _extra_hosts(call)],
        shm_size=_positive(call, "shmsize"),
        ulimits=[Ulimit(limit.name, limit.soft, limit.hard) for limit in _document(call, "ulimits", list[_Ulimit])],
        cgroup_parent=call.text("cgroupparent"),
        limits=Limits(
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
    )


def _document(call: Call, name: str, type: type[T]) -> T:
    """A parameter that is a JSON document; an absent one is an empty one."""
    text = call.text(name)
    if text in ("", "null"):
        return type()
    try:
        return msgspec.json.decode(text, type=type)
    except msgspec.MsgspecError as error:
        raise InvalidParameter(f"error reading {name}: {error}") from error


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


def _credentials(call: Call) -> dict[str, Credentials]:
    header = call.request.header(CONFIG_HEADER)
    if not header.strip():
        return {}
    compact = header.strip().rstrip("=").replace("-", "+").replace("_", "/")
    try:
        document = json.loads(base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidParameter(f"invalid X-Registry-Config header: {error}") from error
    if not isinstance(document, dict):
        return {}
    return {str(host): credentials_from(entry, "X-Registry-Config header") for host, entry in document.items()}


ROUTES: tuple[Route, ...] = (stream("POST", "/build", build),)
