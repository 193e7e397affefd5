"""Filters of system calls, compiled once and not at each start of a container: crun takes them compiled.

An annotation hands crun the finished program. A crun that is known to take it gets a profile beside it that refuses
every call (`STAND_IN`), because to read the real one, 15 KB of JSON, took a tenth of its time. Any other runtime gets
the real profile, and compiles that one. So the container is never without its filter.
"""

import asyncio
import base64
import logging
from collections.abc import Mapping

import msgspec

from husk.kernel import seccomp
from husk.runtime import oci
from husk.text.documents import MalformedDocument, decode

log = logging.getLogger(__name__)

ANNOTATION = oci.FILTER
# What stands in the bundle where the runtime takes the finished program: should it not, nothing runs at all.
STAND_IN: Mapping[str, object] = {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1}
# Every set of capabilities has its own profile; a host sees a handful.
_KEPT = 32
# What is compiled in this process, where nobody could end it. libseccomp takes hours for five rules of six comparisons
# each, and a time that grows with the square of the names: more is left to the runtime, which can be ended.
_MOST_NAMES, _MOST_COMPARISONS, _MOST_ARCHITECTURES = 2000, 64, 16


class _Argument(msgspec.Struct, rename="camel"):
    index: int
    value: int
    op: str
    value_two: int = 0


class _Rule(msgspec.Struct, rename="camel"):
    names: list[str]
    action: str
    errno_ret: int = 1
    args: list[_Argument] = []


class _Profile(msgspec.Struct, rename="camel"):
    default_action: str
    default_errno_ret: int = 1
    architectures: list[str] = []
    syscalls: list[_Rule] = []
    flags: list[str] = []
    listener_path: str = ""


class CompiledFilters:
    """The filters compiled so far."""

    def __init__(self) -> None:
        self._compiled: dict[bytes, dict[str, str]] = {}

    async def annotations(self, profile: Mapping[str, object] | None) -> dict[str, str]:
        """Make the annotations to add to the bundle; none without a filter, or if it cannot be compiled here."""
        if profile is None:
            return {}
        key = msgspec.json.encode(profile)
        if key not in self._compiled:
            result = await asyncio.to_thread(_compile, key)
            while len(self._compiled) >= _KEPT:
                del self._compiled[next(iter(self._compiled))]
            self._compiled[key] = result
        return self._compiled[key]


def _is_quick(profile: _Profile) -> bool:
    names = sum(len(rule.names) for rule in profile.syscalls)
    comparing = [rule for rule in profile.syscalls if rule.args]
    return (
        names <= _MOST_NAMES
        and all(len(rule.args) == 1 for rule in comparing)
        and sum(len(rule.names) for rule in comparing) <= _MOST_COMPARISONS
        and len(profile.architectures) <= _MOST_ARCHITECTURES
    )


def _compile(document: bytes) -> dict[str, str]:
    try:
        profile = decode(document, _Profile)
        if profile.listener_path or profile.flags or not _is_quick(profile):
            return {}
        program = seccomp.compile_filter(
            profile.default_action,
            profile.default_errno_ret,
            profile.architectures,
            [
                seccomp.SeccompRule(
                    rule.names,
                    rule.action,
                    rule.errno_ret,
                    [seccomp.Comparison(item.index, item.op, item.value, item.value_two) for item in rule.args],
                )
                for rule in profile.syscalls
                if (rule.action, rule.errno_ret) != (profile.default_action, profile.default_errno_ret)
            ],
        )
    except (seccomp.CompileError, MalformedDocument) as error:
        log.warning("the runtime compiles the seccomp profile at each start: %s", error)
        return {}
    return {ANNOTATION: base64.b64encode(program).decode()}
