"""Secrets among the values of an environment, and of commands, judged by names and forms. They are hidden until
somebody asks. Pure; the work is linear in the text that is judged."""

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
# What parts settings of which one word has several: `user=a,password=b`.
_BETWEEN = re.compile(r"([,;&])")
# What stands between a name and its value, and how many of these are looked at: a value may have a name in it.
_GIVES = re.compile(r"[=:]")
_DEEPEST = 4


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
            end = "" if (end == " " and not _is_scheme(piece)) or piece.endswith(end) else end
            continue
        name, equals, value = piece.partition("=")
        opening = piece[0] if piece[0] in _QUOTES else ""
        if equals and is_secret(name, value):
            told.append(f"{name}={HIDDEN}")
            quote = value[0] if value[0] in _QUOTES else opening
            end = "" if quote and len(value) > 1 and value.endswith(quote) else quote
        else:
            told.append("".join(map(_setting, _BETWEEN.split(_ADDRESS.sub(f"://{HIDDEN}@", piece)))))
            end = (opening or " ") if _announces(piece) or _is_scheme(piece) else ""
    return "".join(told)


def _setting(part: str) -> str:
    """`--build-arg=TOKEN=abc`, `Authorization:abc`, `"password":"abc"`"""
    place = -1
    for _ in range(_DEEPEST):
        found = _GIVES.search(part, place + 1)
        if found is None:
            break
        place = found.start()
        if is_secret(part[:place], part[place + 1 :]) and not part.startswith("://", place):
            return part[: place + 1] + HIDDEN
    return part


def _is_scheme(word: str) -> bool:
    """Tell if a word is the scheme that stands before the secret in a header."""
    return word.strip("'\":=,").lower() in ("bearer", "basic")


def masked_words(words: Sequence[str]) -> list[str]:
    """The same of a command that is a list."""
    told: list[str] = []
    hide = False
    for word in words:
        told.append(HIDDEN if hide else masked(word))
        hide = not hide and word.startswith("-") and _announces(word)
    return told


def _announces(word: str) -> bool:
    """Tell if the word after this one is a secret."""
    asked = word.endswith(":") or (word.startswith("-") and "=" not in word)
    return asked and not _BLANKS.search(word) and _NAMES.search(word) is not None


def masked_values(named: Mapping[str, Any]) -> dict[str, str]:
    """Labels, or options, with the values hidden that are secrets."""
    return {name: HIDDEN if is_secret(name, str(value)) else masked(str(value)) for name, value in named.items()}


def without_secrets(inspected: Mapping[str, Any]) -> dict[str, Any]:
    """Return a container's document with the secrets of its environment, its commands and its labels hidden."""
    config = dict(inspected.get("Config") or {})
    config["Env"] = [f"{each.name}={each.value}" for each in variables(config.get("Env"))]
    for key in ("Cmd", "Entrypoint"):
        if config.get(key):
            config[key] = masked_words(config[key])
    if config.get("Labels"):
        config["Labels"] = masked_values(config["Labels"])
    if (check := config.get("Healthcheck") or {}).get("Test"):
        config["Healthcheck"] = {**check, "Test": masked_words(check["Test"])}
    if config.get("OnBuild"):
        config["OnBuild"] = [masked(each) for each in config["OnBuild"]]
    told = {**inspected, "Config": config}
    if told.get("Args"):
        told["Args"] = masked_words(told["Args"])
    if host := inspected.get("HostConfig"):
        told["HostConfig"] = _host_without_secrets(host)
    state = inspected.get("State") or {}
    if checks := (state.get("Health") or {}).get("Log"):
        checks = [{**each, "Output": masked(str(each.get("Output") or ""))} for each in checks]
        told["State"] = {**state, "Health": {**state["Health"], "Log": checks}}
    return told


def _host_without_secrets(host: Mapping[str, Any]) -> dict[str, Any]:
    """Options of log and volume drivers may have passwords, and annotations anything."""
    told = dict(host)
    if options := (host.get("LogConfig") or {}).get("Config"):
        told["LogConfig"] = {**host["LogConfig"], "Config": masked_values(options)}
    if host.get("Annotations"):
        told["Annotations"] = masked_values(host["Annotations"])
    if host.get("Mounts"):
        told["Mounts"] = [_mount_without_secrets(each) for each in host["Mounts"]]
    return told


def _mount_without_secrets(mount: Mapping[str, Any]) -> Mapping[str, Any]:
    volume = mount.get("VolumeOptions") or {}
    told = dict(volume)
    if volume.get("Labels"):
        told["Labels"] = masked_values(volume["Labels"])
    if options := (volume.get("DriverConfig") or {}).get("Options"):
        told["DriverConfig"] = {**volume["DriverConfig"], "Options": masked_values(options)}
    return {**mount, "VolumeOptions": told} if volume else mount
