"""The meaning of a client's own seccomp profile for one container: Docker's format becomes the OCI one. Pure.

Docker's format is the OCI format with conditions: a rule may hold for some architectures, capabilities or kernels only,
and `archMap` names the architectures that go with the host's.
"""

import re
from collections.abc import Collection

import msgspec

from husk.errors import InvalidParameter
from husk.runtime.seccomp.default_profile import ARCHITECTURES, machine_of
from husk.text.documents import decode

Json = dict[str, object]

_ACTIONS = ("KILL", "KILL_PROCESS", "KILL_THREAD", "TRAP", "ERRNO", "TRACE", "ALLOW", "LOG", "NOTIFY")
_OPERATORS = ("NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ")
# By the names that Go has for architectures, which conditions use.
_GO_NAMES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}


class _Condition(msgspec.Struct, rename="camel"):
    arches: list[str] | None = None
    caps: list[str] | None = None
    min_kernel: str = ""


class _Argument(msgspec.Struct, rename="camel"):
    index: int
    value: int
    op: str
    value_two: int = 0


class _Rule(msgspec.Struct, rename="camel"):
    action: str
    name: str = ""
    names: list[str] | None = None
    errno_ret: int | None = None
    args: list[_Argument | None] | None = None
    includes: _Condition | None = None
    excludes: _Condition | None = None


class _Architecture(msgspec.Struct, rename="camel"):
    architecture: str = ""
    sub_architectures: list[str] | None = None


class Profile(msgspec.Struct, rename="camel"):
    """A profile in Docker's format."""

    default_action: str = ""
    default_errno_ret: int | None = None
    architectures: list[str] | None = None
    arch_map: list[_Architecture] | None = None
    syscalls: list[_Rule | None] | None = None
    flags: list[str] | None = None
    listener_path: str = ""
    listener_metadata: str = ""


def parse(text: str) -> Profile:
    """Raises Malformed when it is no profile, InvalidParameter when it contradicts itself."""
    profile = decode(text, Profile)
    if profile.architectures and profile.arch_map:
        raise InvalidParameter(
            "'architectures' and 'archMap' were specified in the seccomp profile, use either 'architectures' or "
            "'archMap'"
        )
    rules = [rule for rule in profile.syscalls or () if rule is not None]
    actions = [profile.default_action] if profile.default_action or rules else []
    for rule in rules:
        if rule.name and rule.names:
            raise InvalidParameter(
                "'name' and 'names' were specified in the seccomp profile, use either 'name' or 'names'"
            )
        actions.append(rule.action)
        for argument in rule.args or ():
            if argument is not None and argument.op.removeprefix("SCMP_CMP_") not in _OPERATORS:
                raise InvalidParameter(f"string {argument.op} is not a valid operator for seccomp")
    for action in actions:
        if action.removeprefix("SCMP_ACT_") not in _ACTIONS:
            raise InvalidParameter(f"string {action} is not a valid action for seccomp")
    return profile


def resolve(profile: Profile, capabilities: Collection[str], architecture: str, kernel: str) -> Json | None:
    """The `linux.seccomp` part of a bundle on this host; None for a profile that says nothing."""
    if not profile.default_action and not profile.syscalls:
        return None
    machine = machine_of(architecture)
    here = _Here(capabilities, _GO_NAMES.get(machine, machine), kernel)
    document: Json = {
        "defaultAction": profile.default_action,
        "defaultErrnoRet": profile.default_errno_ret,
        "architectures": _architectures(profile, machine) or None,
        "flags": profile.flags,
        "listenerPath": profile.listener_path or None,
        "listenerMetadata": profile.listener_metadata or None,
        "syscalls": [_rule(rule) for rule in profile.syscalls or () if rule is not None and here.wants(rule)] or None,
    }
    return {name: value for name, value in document.items() if value is not None}


class _Here:
    """The capabilities, architecture and kernel that a rule's conditions are held against."""

    def __init__(self, capabilities: Collection[str], architecture: str, kernel: str) -> None:
        self._capabilities = capabilities
        self._architecture = architecture
        self._kernel = kernel

    def wants(self, rule: _Rule) -> bool:
        with_, without = rule.includes or _Condition(), rule.excludes or _Condition()
        if without.arches and self._architecture in without.arches:
            return False
        if without.caps and any(name in self._capabilities for name in without.caps):
            return False
        if without.min_kernel and self._at_least(without.min_kernel):
            return False
        if with_.arches and self._architecture not in with_.arches:
            return False
        if with_.caps and not all(name in self._capabilities for name in with_.caps):
            return False
        return not with_.min_kernel or self._at_least(with_.min_kernel)

    def _at_least(self, version: str) -> bool:
        return _numbers(self._kernel) >= _numbers(version)


def _numbers(version: str) -> tuple[int, int]:
    match = re.match(r"(\d{1,9})\.(\d{1,9})", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _architectures(profile: Profile, machine: str) -> list[str]:
    native = ARCHITECTURES.get(machine, ("",))[0]
    for entry in profile.arch_map or ():
        if entry.architecture == native:
            return [entry.architecture, *(entry.sub_architectures or ())]
    return profile.architectures or []


def _rule(rule: _Rule) -> Json:
    document: Json = {"names": rule.names or [rule.name], "action": rule.action}
    if rule.errno_ret is not None:
        document["errnoRet"] = rule.errno_ret
    arguments = [msgspec.to_builtins(argument) for argument in rule.args or () if argument is not None]
    if arguments:
        document["args"] = arguments
    return document
