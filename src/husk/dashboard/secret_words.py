"""Which values of an environment, and of commands, are secrets, judged by names and forms? They are hidden until
somebody asks. Pure; the work is linear in what is judged."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_NAMES = re.compile(r"PASS|PWD$|SECRET|TOKEN|KEY|CREDENTIAL|PRIVATE|AUTH|COOKIE|SALT|SIGNATURE|CERT|DSN", re.IGNORECASE)
# An address with a password in it.
_ADDRESS = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
HIDDEN = "••••••••"
_BLANKS = re.compile(r"(\s+)")
_QUOTES = "'\""


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


def masked(text: str) -> str:
    """A command, or a step of a build, without the values that its words call secrets: `TOKEN=…`, `--password …`,
    `Authorization: …`, the password of an address."""
    told: list[str] = []
    # What ends that which is hidden: a quote, or a blank.
    end = ""
    for piece in _BLANKS.split(text):
        if not piece or piece.isspace():
            told.append(piece)
            continue
        if end:
            told.append(HIDDEN)
            end = "" if end == " " or piece.endswith(end) else end
            continue
        name, equals, value = piece.partition("=")
        opening = piece[0] if piece[0] in _QUOTES else ""
        if equals and is_secret(name, value):
            told.append(f"{name}={HIDDEN}")
            quote = value[0] if value[0] in _QUOTES else opening
            end = "" if quote and len(value) > 1 and value.endswith(quote) else quote
        else:
            told.append(_ADDRESS.sub(f"://{HIDDEN}@", piece))
            end = (opening or " ") if _announces(piece) else ""
    return "".join(told)


def masked_words(words: Sequence[str]) -> list[str]:
    """The same of a command that is a list."""
    told: list[str] = []
    hide = False
    for word in words:
        told.append(HIDDEN if hide else masked(word))
        hide = not hide and word.startswith("-") and _announces(word)
    return told


def _announces(word: str) -> bool:
    """Is the next word a secret?"""
    asked = word.startswith("-") or word.endswith(":")
    return asked and "=" not in word and not _BLANKS.search(word) and _NAMES.search(word) is not None


def masked_values(named: Mapping[str, Any]) -> dict[str, str]:
    """Labels, or options, with the values hidden that are secrets."""
    return {name: HIDDEN if is_secret(name, str(value)) else masked(str(value)) for name, value in named.items()}


def without_secrets(inspected: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a container, with the secrets of its environment and of its commands hidden."""
    config = dict(inspected.get("Config") or {})
    config["Env"] = [f"{each.name}={each.value}" for each in variables(config.get("Env"))]
    for key in ("Cmd", "Entrypoint"):
        if config.get(key):
            config[key] = masked_words(config[key])
    if config.get("Labels"):
        config["Labels"] = masked_values(config["Labels"])
    if (check := config.get("Healthcheck") or {}).get("Test"):
        config["Healthcheck"] = {**check, "Test": masked_words(check["Test"])}
    told = {**inspected, "Config": config}
    if told.get("Args"):
        told["Args"] = masked_words(told["Args"])
    host = inspected.get("HostConfig") or {}
    if options := (host.get("LogConfig") or {}).get("Config"):
        told["HostConfig"] = {**host, "LogConfig": {**host["LogConfig"], "Config": masked_values(options)}}
    return told
