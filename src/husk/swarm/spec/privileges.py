"""A service's privileges as the security options of its containers. Pure."""

import base64
import binascii

from husk.engine.containers.config import security
from husk.errors import InvalidParameter, NotImplementedYet
from husk.swarm.model.services import Privileges, SeccompMode, SELinuxContext

_PREFIX = "rpc error: code = InvalidArgument desc = "


def check(wanted: Privileges | None) -> None:
    """Raise for what cannot become security options; what would be ignored is refused instead."""
    if wanted is None:
        return
    if wanted.credential_spec:
        raise NotImplementedYet("credential specs of services are for Windows: Husk does not implement them")
    if wanted.app_armor is not None and wanted.app_armor.mode not in ("", "default", "disabled"):
        raise InvalidParameter(_PREFIX + f"unknown AppArmor mode {wanted.app_armor.mode!r}: default and disabled are")
    if wanted.seccomp is not None:
        _check_seccomp(wanted.seccomp)
    security.check(options(wanted))


def options(wanted: Privileges) -> list[str]:
    """The words of `--security-opt` that mean the same."""
    found = ["no-new-privileges"] if wanted.no_new_privileges else []
    if wanted.seccomp is not None and wanted.seccomp.mode == "unconfined":
        found.append("seccomp=unconfined")
    if wanted.seccomp is not None and wanted.seccomp.mode == "custom":
        found.append("seccomp=" + _profile(wanted.seccomp))
    if wanted.app_armor is not None and wanted.app_armor.mode == "disabled":
        found.append("apparmor=unconfined")
    return found + (_labels(wanted.se_linux_context) if wanted.se_linux_context is not None else [])


def _check_seccomp(wanted: SeccompMode) -> None:
    if wanted.mode not in ("", "default", "unconfined", "custom"):
        raise InvalidParameter(_PREFIX + f"unknown seccomp mode {wanted.mode!r}: default, unconfined and custom are")
    if bool(wanted.profile) != (wanted.mode == "custom"):
        raise InvalidParameter(_PREFIX + "a seccomp profile goes with the mode custom, and that with a profile")


def _profile(wanted: SeccompMode) -> str:
    try:
        return base64.b64decode(wanted.profile, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidParameter(_PREFIX + f"the seccomp profile must be text in base64: {error}") from None


def _labels(context: SELinuxContext) -> list[str]:
    if context.disable:
        return ["label=disable"]
    parts = {"user": context.user, "role": context.role, "type": context.type, "level": context.level}
    return [f"label={name}:{value}" for name, value in parts.items() if value]
