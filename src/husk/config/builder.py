"""The `builder` key of `daemon.json`: how much of the cache of builds stays, and for how long."""

from typing import Any

import msgspec

from husk.config import CPU_PERIOD, BuilderConfig, CacheRule, StepCeiling, values
from husk.config.settings import in_case
from husk.errors import InvalidParameter

# As `docker run` has it, and what the kernel takes.
_LEAST_MEMORY = 6 << 20
_MOST_MEMORY = 1 << 50
_LEAST_CPUS, _MOST_CPUS = 0.01, 10_000


class _Policy(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    keep_storage: str | int = ""
    reserved_space: str | int = ""
    max_used_space: str | int = ""
    min_free_space: str | int = ""
    all: bool = False
    filter: dict[str, dict[str, bool]] | list[str] = []


class _Collection(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    enabled: bool = True
    default_keep_storage: str | int = ""
    default_reserved_space: str | int = ""
    default_max_used_space: str | int = ""
    default_min_free_space: str | int = ""
    policy: list[_Policy] = []


class _Entitlements(msgspec.Struct, forbid_unknown_fields=True, rename="kebab"):
    network_host: bool | None = None
    security_insecure: bool | None = None


class _Limits(msgspec.Struct, forbid_unknown_fields=True):
    memory: str | int = ""
    cpus: float = 0.0


class _Builder(msgspec.Struct, forbid_unknown_fields=True):
    gc: _Collection = msgspec.field(default_factory=_Collection)
    entitlements: _Entitlements = msgspec.field(default_factory=_Entitlements)
    limits: _Limits = msgspec.field(default_factory=_Limits)
    history: dict[str, Any] = {}


def builder(document: dict[str, Any] | None) -> BuilderConfig:
    try:
        read = msgspec.convert(_in_our_case(document or {}), _Builder)
    except msgspec.ValidationError as error:
        raise InvalidParameter(f"invalid builder: {error}") from None
    collection = read.gc
    return BuilderConfig(
        collects=collection.enabled,
        keep=_most(
            collection.default_keep_storage, collection.default_max_used_space, collection.default_reserved_space
        ),
        rules=tuple(_rule(policy) for policy in collection.policy),
        insecure=bool(read.entitlements.security_insecure),
        host_network=read.entitlements.network_host is not False,
        limits=_ceiling(read.limits),
    )


def _in_our_case(document: dict[str, Any]) -> dict[str, Any]:
    """The document with all keys as they are written here."""
    found: dict[str, Any] = in_case(document, _Builder, "builder")
    for key, kind in (("gc", _Collection), ("entitlements", _Entitlements), ("limits", _Limits)):
        if key in found:
            found[key] = in_case(found[key], kind, f"builder.{key}")
    collection = found.get("gc")
    if isinstance(collection, dict) and isinstance(policies := collection.get("policy"), list):
        collection["policy"] = [in_case(policy, _Policy, "builder.gc.policy") for policy in policies]
    return found


def _ceiling(limits: _Limits) -> StepCeiling:
    memory = values.size("builder.limits.memory", limits.memory) if limits.memory else 0
    if memory > _MOST_MEMORY:
        raise InvalidParameter(f"invalid builder.limits.memory {limits.memory!r}: expected at most 1p; 0 is no limit")
    if memory and memory < _LEAST_MEMORY:
        raise InvalidParameter(
            f"invalid builder.limits.memory {limits.memory!r}: a process needs {_LEAST_MEMORY >> 20} MiB"
        )
    if limits.cpus and not _LEAST_CPUS <= limits.cpus <= _MOST_CPUS:
        raise InvalidParameter(f"invalid builder.limits.cpus {limits.cpus:g}: expected {_LEAST_CPUS:g} to {_MOST_CPUS}")
    return StepCeiling(memory, round(limits.cpus * CPU_PERIOD))


def _rule(policy: _Policy) -> CacheRule:
    wanted = _filters(policy.filter)
    for name in wanted:
        if name not in ("type", "unused-for", "until"):
            raise InvalidParameter(f"invalid filter {name!r} of builder.gc.policy: Husk knows type and unused-for")
    ages = [*wanted.get("unused-for", []), *wanted.get("until", [])]
    if len(ages) > 1:
        raise InvalidParameter("invalid filter of builder.gc.policy: only one unused-for is expected")
    return CacheRule(
        types=tuple(wanted.get("type", [])),
        unused_for=ages[0] if ages else "",
        keep=_most(policy.keep_storage, policy.max_used_space, policy.reserved_space),
        all=policy.all,
    )


def _filters(given: dict[str, dict[str, bool]] | list[str]) -> dict[str, list[str]]:
    """Both forms that dockerd reads: `{"type": {"regular": true}}` and `["type=regular"]`."""
    if isinstance(given, dict):
        return {name: list(chosen) for name, chosen in given.items()}
    wanted: dict[str, list[str]] = {}
    for entry in given:
        name, separator, value = entry.replace("==", "=", 1).partition("=")
        if not separator:
            raise InvalidParameter(f"invalid filter {entry!r} of builder.gc.policy: expected NAME=VALUE")
        wanted.setdefault(name, []).append(value)
    return wanted


def _most(*sizes: str | int) -> int:
    return next((values.size("builder.gc", size) for size in sizes if size not in ("", 0)), 0)
