"""The words of `--security-opt`, parsed once, in dockerd's grammar, for checks and for planning. Pure.

AppArmor and SELinux words are taken everywhere, as by dockerd: on a host without the module they change nothing.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from husk.errors import InvalidParameter
from husk.runtime.seccomp.custom_profile import Profile
from husk.runtime.seccomp.custom_profile import parse as parse_profile
from husk.text.documents import MalformedDocument

# Of a seccomp profile. It is read at every start; Docker's own has 12 KB.
_LONGEST_PROFILE = 1 << 18
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


class SecurityOptions(msgspec.Struct, frozen=True):
    """`seccomp` is the text of a profile, "unconfined", or "" for Husk's own."""

    no_new_privileges: bool = False
    seccomp: str = ""
    apparmor: str = ""
    labels: tuple[str, ...] = ()
    writable_cgroups: bool = False

    @property
    def seccomp_unconfined(self) -> bool:
        return self.seccomp == "unconfined"

    @property
    def custom_profile(self) -> "Profile | None":
        return None if self.seccomp in ("", "unconfined") else parse_profile(self.seccomp)


def parse(options: Sequence[str] | None, default: SecurityOptions | None = None) -> SecurityOptions:
    """The options together; a later one wins. Raises InvalidParameter with dockerd's words.

    `default` is what the daemon's settings say where the options say nothing.
    """
    result = default or SecurityOptions()
    for option in options or ():
        result = _with(result, option)
    return result


def check(options: Sequence[str] | None) -> None:
    """Raise for what cannot become a container's security."""
    found = parse(options)
    if len(found.seccomp) > _LONGEST_PROFILE:
        raise InvalidParameter(
            f"Decoding seccomp profile failed: it has {len(found.seccomp)} characters, {_LONGEST_PROFILE} is the most"
        )
    try:
        _ = found.custom_profile
    except MalformedDocument as error:
        raise InvalidParameter(f"Decoding seccomp profile failed: {error}") from None


def _with(result: SecurityOptions, option: str) -> SecurityOptions:
    if option == "no-new-privileges":
        return replace(result, no_new_privileges=True)
    if option == "writable-cgroups":
        return replace(result, writable_cgroups=True)
    if option == "disable":
        return replace(result, labels=(*result.labels, option))
    # The colon is the older form; a profile's text has both, its first '=' comes before.
    separator = "=" if "=" in option else ":"
    name, found, value = option.partition(separator)
    if not found:
        raise InvalidParameter(f'invalid --security-opt 1: "{option}"')
    if name == "label":
        return replace(result, labels=(*result.labels, value))
    if name == "apparmor":
        return replace(result, apparmor=value)
    if name == "seccomp":
        return replace(result, seccomp="" if value == "builtin" else value)
    if name == "no-new-privileges" and value in (*_TRUE, *_FALSE):
        return replace(result, no_new_privileges=value in _TRUE)
    if name == "writable-cgroups" and value in (*_TRUE, *_FALSE):
        return replace(result, writable_cgroups=value in _TRUE)
    raise InvalidParameter(f'invalid --security-opt 2: "{option[:200]}"')
