"""`POST /build?version=2` in the words of BuildKit's protocol."""

from collections.abc import Sequence

from husk.api.build_request import Output, request_of
from husk.api.calls.call import Call
from husk.api.http.response import Answer
from husk.api.routes.buildkit import server_of
from husk.api.streams.feed import stream_progress
from husk.builder.classic.build import ClassicRequest, Report
from husk.builder.protocol.messages.control import Exporter
from husk.builder.protocol.posted import IMAGES, OF_UPLOAD, PostedBuild
from husk.errors import InvalidParameter

_CHUNK = 1 << 20
_CACHE_ONLY = "cacheonly"  # no exporter at all
_UPLOAD = f"{OF_UPLOAD}:"
_LIMITS = ("memory", "memswap", "cpushares", "cpuperiod", "cpuquota")


async def build_by_buildkit(call: Call, outputs: Sequence[Output]) -> Answer:
    server = await server_of(call.common)
    id = call.text("buildid")
    if id.startswith(_UPLOAD):
        await server.posted.upload(id.removeprefix(_UPLOAD), call.upload(_CHUNK))
        return call.empty(200)
    wanted = _posted(call, outputs)

    async def work(report: Report) -> None:
        await server.posted.build(wanted, call.upload(_CHUNK), report)

    return await stream_progress(call, work, "build")


def _posted(call: Call, outputs: Sequence[Output]) -> PostedBuild:
    request = request_of(call)
    names = ",".join(str(name) for name in request.names)
    exporters = [Exporter(one.type, dict(one.attrs or {})) for one in outputs] or [Exporter(IMAGES[0])]
    for one in exporters:
        if one.type in IMAGES and names:
            one.attrs = {**one.attrs, "name": names}
    options = request.options
    return PostedBuild(
        id=call.text("buildid"),
        session=call.text("session"),
        remote=call.text("remote"),
        attributes=_attributes(call, request),
        exporters=[one for one in exporters if one.type != _CACHE_ONLY],
        inline_cache=options.build_args.get("BUILDKIT_INLINE_CACHE", "").lower() in ("1", "t", "true"),
        cache_from=request.cache_from,
        entitlements=["network.host"] if options.network == "host" else [],
        quiet=request.quiet,
    )


def _attributes(call: Call, request: ClassicRequest) -> dict[str, str]:
    """The request in the words of BuildKit's frontend."""
    options = request.options
    network = call.text("networkmode")
    if network not in ("", "default", "none", "host"):
        raise InvalidParameter(f'network mode "{network}" not supported by buildkit')
    said = {
        "target": options.target,
        "filename": call.text("dockerfile"),
        "platform": call.text("platform"),
        "force-network-mode": "" if network == "default" else network,
        "add-hosts": ",".join(f"{name}={address}" for name, address in options.extra_hosts),
        "shm-size": str(options.shm_size or ""),
        "ulimit": ",".join(f"{limit.name}={limit.soft}:{limit.hard}" for limit in options.ulimits),
        "cgroup-parent": options.cgroup_parent,
        "image-resolve-mode": "pull" if request.pull else "default",
        **{name: call.text(name) for name in _LIMITS if call.integer(name)},
        **{name: call.text(name) for name in ("cpusetcpus", "cpusetmems")},
    }
    attributes = {name: value for name, value in said.items() if value}
    attributes |= {f"build-arg:{name}": value for name, value in options.build_args.items()}
    attributes |= {f"label:{name}": value for name, value in options.labels.items()}
    return attributes | ({"no-cache": ""} if options.no_cache else {})
