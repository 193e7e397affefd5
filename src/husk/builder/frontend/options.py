"""The options of a client for the built-in frontend: words and values, as BuildKit's clients send them. Pure."""

import ipaddress
from collections.abc import Mapping

from msgspec import Struct

from husk.builder.dockerfile.comma_fields import BadFields, comma_fields
from husk.builder.dockerfile.options import Options
from husk.builder.graph.operations import StepLimits, StepUlimit
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform, parse_platform

DEFAULT_FILE = "Dockerfile"
EPOCH = "SOURCE_DATE_EPOCH"
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")
_MODES = ("", "default", "pull", "local")
_NETWORKS = ("", "default", "none", "host", "sandbox")
# Of all attributes together, in bytes, and of one that is a list.
_MOST, _MOST_FIELDS = 4 << 20, 1000


class FrontendOptions(Struct, frozen=True, kw_only=True):
    options: Options  # without a platform
    file_name: str = DEFAULT_FILE
    platforms: list[Platform] = []  # the host's own, if there is none
    several_platforms: bool = False  # the result is an index, though it may have one platform
    pull: bool = False
    context: str = ""  # an address, if the context is no directory of the client's
    context_name: str = "context"
    dockerfile_name: str = "dockerfile"
    dockerfile_is_local: bool = False  # though the context be elsewhere
    subdirectory: str = ""
    named_contexts: dict[str, str] = {}
    input_metadata: dict[str, str] = {}
    local_sessions: dict[str, str] = {}
    request: str = ""  # a question about the Dockerfile instead of a build
    epoch: int | None = None


def read(attributes: Mapping[str, str]) -> FrontendOptions:
    if sum(len(name) + len(value) for name, value in attributes.items()) > _MOST:
        raise InvalidParameter(f"the attributes of a frontend have more than {_MOST >> 20} MiB")
    build_args = _below("build-arg:", attributes)
    no_cache = attributes.get("no-cache")
    platforms = [_platform(text) for text in _fields("platform", attributes)]
    epoch = epoch_of(build_args)
    options = Options(
        target=attributes.get("target", ""),
        build_args=build_args,
        labels=_below("label:", attributes),
        no_cache=no_cache == "",
        no_cache_stages=no_cache.split(",", _MOST_FIELDS) if no_cache else [],
        network=_one_of("force-network-mode", attributes, _NETWORKS),
        hostname=build_args.get("BUILDKIT_SANDBOX_HOSTNAME") or attributes.get("hostname", ""),
        extra_hosts=[_host(text) for text in _fields("add-hosts", attributes)],
        shm_size=_number("shm-size", attributes),
        ulimits=[_ulimit(text) for text in _fields("ulimit", attributes)],
        cgroup_parent=attributes.get("cgroup-parent", ""),
        cache_namespace=build_args.get("BUILDKIT_CACHE_MOUNT_NS", ""),
        limits=_limits(attributes),
        check=build_args.get("BUILDKIT_DOCKERFILE_CHECK"),
        epoch=epoch * 10**9 if epoch is not None else None,
    )
    return FrontendOptions(
        options=options,
        file_name=attributes.get("filename") or DEFAULT_FILE,
        platforms=platforms,
        several_platforms=_several(attributes, build_args, platforms),
        pull=_one_of("image-resolve-mode", attributes, _MODES) == "pull",
        context=attributes.get(attributes.get("contextkey") or "context", ""),
        context_name=attributes.get("contextkey") or "context",
        dockerfile_name=attributes.get("dockerfilekey") or "dockerfile",
        dockerfile_is_local="dockerfilekey" in attributes,
        subdirectory=attributes.get("contextsubdir", ""),
        named_contexts=_below("context:", attributes),
        input_metadata=_below("input-metadata:", attributes),
        local_sessions=_below("local-sessionid:", attributes),
        request=attributes.get("requestid", ""),
        epoch=epoch,
    )


def _below(prefix: str, attributes: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in attributes.items() if name.startswith(prefix)}


def _fields(name: str, attributes: Mapping[str, str]) -> list[str]:
    text = attributes.get(name, "")
    if not text:
        return []
    if text.count(",") >= _MOST_FIELDS:
        raise InvalidParameter(f"failed to parse {name}: it has more than {_MOST_FIELDS} fields")
    try:
        return comma_fields(text)
    except BadFields as error:
        raise InvalidParameter(f"failed to parse {name}: {error}") from None


def _one_of(name: str, attributes: Mapping[str, str], known: tuple[str, ...]) -> str:
    value = attributes.get(name, "")
    if value not in known:
        raise InvalidParameter(f"invalid {name}: {value}")
    return value


def _platform(text: str) -> Platform:
    try:
        return parse_platform(text)
    except InvalidParameter as error:
        raise InvalidParameter(f"failed to parse target platform {text[:256]}: {error.message}") from None


def _several(attributes: Mapping[str, str], build_args: Mapping[str, str], platforms: list[Platform]) -> bool:
    said = build_args.get("BUILDKIT_MULTI_PLATFORM") or attributes.get("multi-platform", "")
    if not said:
        return len(platforms) > 1
    if said not in _TRUE + _FALSE:
        raise InvalidParameter(f"invalid boolean value for multi-platform: {said}")
    if said in _FALSE and len(platforms) > 1:
        raise InvalidParameter("conflicting config: returning multiple target platforms is not allowed")
    return said in _TRUE


def _host(text: str) -> tuple[str, str]:
    name, separator, address = text.lower().partition("=")
    if not separator:
        raise InvalidParameter(f"failed to parse additional hosts: invalid key-value pair {text}")
    try:
        return name, str(ipaddress.ip_address(address))
    except ValueError:
        raise InvalidParameter(f"failed to parse additional hosts: failed to parse IP {address}") from None


def _ulimit(text: str) -> StepUlimit:
    """`nofile=1024:2048`, or one number for both."""
    name, separator, values = text.partition("=")
    soft, _, hard = values.partition(":")
    try:
        if not separator:
            raise ValueError
        return StepUlimit(name, int(soft), int(hard or soft))
    except ValueError:
        raise InvalidParameter(f"failed to parse ulimit: invalid argument: {text}") from None


def _number(name: str, attributes: Mapping[str, str]) -> int:
    text = attributes.get(name, "")
    try:
        return int(text or "0")
    except ValueError:
        raise InvalidParameter(f"invalid {name} value: {text}") from None


def _limits(attributes: Mapping[str, str]) -> StepLimits:
    return StepLimits(
        memory=_limit("memory", attributes),
        memory_swap=_limit("memswap", attributes, least=-1),
        cpu_shares=_limit("cpushares", attributes),
        cpu_period=_limit("cpuperiod", attributes),
        cpu_quota=_limit("cpuquota", attributes),
        cpuset_cpus=attributes.get("cpusetcpus", ""),
        cpuset_mems=attributes.get("cpusetmems", ""),
    )


def _limit(name: str, attributes: Mapping[str, str], least: int = 1) -> int:
    value = _number(name, attributes)
    if attributes.get(name) and (value < least or value == 0):
        raise InvalidParameter(f"invalid {name} value: {attributes[name]}: must be > 0")
    return value


def epoch_of(build_args: Mapping[str, str]) -> int | None:
    """SOURCE_DATE_EPOCH, in seconds."""
    text = build_args.get(EPOCH, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(f"invalid {EPOCH}: {text!r} is no number of seconds") from None
