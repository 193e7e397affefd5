"""Which values of an environment are secrets, judged by names and forms? They are hidden until somebody asks. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_NAMES = re.compile(r"PASS|PWD$|SECRET|TOKEN|KEY|CREDENTIAL|PRIVATE|AUTH|COOKIE|SALT|SIGNATURE|CERT|DSN", re.IGNORECASE)
# An address with a password in it.
_ADDRESS = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
HIDDEN = "••••••••"


class Variable(msgspec.Struct, frozen=True):
    """One variable as a page shows it."""

    name: str
    value: str
    secret: bool
    hidden: bool


def is_secret(name: str, value: str) -> bool:
    return bool(value) and (_NAMES.search(name) is not None or _ADDRESS.search(value) is not None)


def variables(environment: Sequence[str] | None, asked_for: str = "") -> list[Variable]:
    """All of them by name; secrets are hidden but for the one that was asked for, or for `*`."""
    found = []
    for each in sorted(environment or ()):
        name, _, value = each.partition("=")
        secret = is_secret(name, value)
        hidden = secret and asked_for not in (name, "*")
        found.append(Variable(name, HIDDEN if hidden else value, secret, hidden))
    return found


def without_secrets(inspected: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a container, with the secrets of its environment hidden."""
    config = dict(inspected.get("Config") or {})
    config["Env"] = [f"{each.name}={each.value}" for each in variables(config.get("Env"))]
    return {**inspected, "Config": config}
