"""Mounts as `-v`, `--mount` and `--tmpfs` take them. Pure, but for the directory that relative paths begin at."""

import csv
import os
from collections.abc import Sequence
from typing import Any

from husk.client.spec import Mount, size
from husk.errors import InvalidParameter

# A specification that is no longer than this has no parts; a source, a target and options.
_SHORTEST, _MOST_PARTS = 2, 3
_KINDS = ("bind", "volume", "tmpfs", "image", "npipe", "cluster")


def binds(given: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Separate the mounts that have a source from the places of volumes that have no name."""
    named: list[str] = []
    nameless: dict[str, Any] = {}
    for text in given:
        _check(text)
        source, colon, rest = text.partition(":")
        if not colon or len(text) <= _SHORTEST:
            nameless[text] = {}
        else:
            named.append(f"{_absolute(source)}:{rest}")
    return named, nameless


def _check(text: str) -> None:
    """As docker's client does, from left to right and in its words; what is too short for it to take apart it takes
    for a place."""
    if not text:
        raise InvalidParameter("invalid empty volume spec")
    parts = text.split(":") if len(text) > _SHORTEST else [text]
    for number, part in enumerate(parts, 1):
        if not part:
            raise InvalidParameter(f"invalid spec: {text}: empty section between colons")
        if number == _MOST_PARTS < len(parts):
            raise InvalidParameter(f"invalid spec: {text}: too many colons")


def _absolute(source: str) -> str:
    """A path of ours; a name stays one."""
    return os.path.abspath(source) if source.startswith((".", "/")) else source


def tmpfs(given: Sequence[str]) -> dict[str, str]:
    return {place: options for place, _, options in (text.partition(":") for text in given)}


def mount(text: str) -> Mount:
    """`type=bind,src=/a,dst=/b,ro`"""
    kind, source, target, read_only = "volume", "", "", False
    bind: dict[str, Any] = {}
    volume: dict[str, Any] = {}
    memory: dict[str, Any] = {}
    image: dict[str, Any] = {}
    consistency = ""
    for field in next(csv.reader([text]), []):
        name, equals, value = field.strip().partition("=")
        match name.lower():
            case "type":
                kind = value.lower()
            case "source" | "src":
                source = value
            case "target" | "dst" | "destination":
                target = value
            case "readonly" | "ro":
                read_only = _truth(value, name) if equals else True
            case "consistency":
                consistency = value.lower()
            case "bind-propagation":
                bind["Propagation"] = value.lower()
            case "bind-create-src":
                bind["CreateMountpoint"] = _truth(value, name) if equals else True
            case "bind-recursive":
                bind |= _recursion(value)
            case "bind-nonrecursive":
                bind["NonRecursive"] = _truth(value, name) if equals else True
            case "volume-nocopy":
                volume["NoCopy"] = _truth(value, name) if equals else True
            case "volume-subpath":
                volume["Subpath"] = value
            case "volume-driver":
                volume.setdefault("DriverConfig", {})["Name"] = value
            case "volume-label":
                label, _, said = value.partition("=")
                volume.setdefault("Labels", {})[label] = said
            case "volume-opt":
                option, _, said = value.partition("=")
                volume.setdefault("DriverConfig", {}).setdefault("Options", {})[option] = said
            case "tmpfs-size":
                memory["SizeBytes"] = size(value)
            case "tmpfs-mode":
                memory["Mode"] = _mode(value)
            case "image-subpath":
                image["Subpath"] = value
            case _:
                raise InvalidParameter(f"--mount: unexpected key {name!r} in {field!r}")
    if kind not in _KINDS:
        raise InvalidParameter(f"--mount: invalid type {kind!r}: expected bind, volume, tmpfs or image")
    if not target:
        raise InvalidParameter("--mount: target is required: say it with target=/PATH")
    parts = {"BindOptions": bind, "VolumeOptions": volume, "TmpfsOptions": memory, "ImageOptions": image}
    options: dict[str, Any] = {name: part for name, part in parts.items() if part}
    if consistency:
        options["Consistency"] = consistency
    if kind == "bind":
        source = _absolute(source)
    return Mount(target=target, source=source, type=kind, read_only=read_only, options=options)


def _truth(value: str, name: str) -> bool:
    if value.lower() not in ("1", "true", "t", "0", "false", "f"):
        raise InvalidParameter(f"--mount: invalid value for {name}: {value}: expected true or false")
    return value.lower() in ("1", "true", "t")


def _recursion(value: str) -> dict[str, bool]:
    kinds = {
        "enabled": {},
        "disabled": {"NonRecursive": True},
        "writable": {"ReadOnlyNonRecursive": True},
        "readonly": {"ReadOnlyForceRecursive": True},
    }
    if value not in kinds:
        raise InvalidParameter(f"--mount: invalid value for bind-recursive: {value!r}: expected {', '.join(kinds)}")
    return kinds[value]


def _mode(value: str) -> int:
    try:
        return int(value, 8)
    except ValueError:
        raise InvalidParameter(f"--mount: invalid value for tmpfs-mode: {value!r}: expected for example 1777") from None
