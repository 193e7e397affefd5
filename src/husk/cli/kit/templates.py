"""Go templates as people use them with `--format`: those of `husk.text.gotemplate`, with docker's functions."""

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from husk.cli.kit.words import json_text
from husk.errors import InvalidParameter
from husk.text.gofunctions import ABSENT
from husk.text.gotemplate import Effort, Function, parse

# What documents of the API have only where there is something to tell. Others that are missing are misspelt.
_MAY_BE_OMITTED = frozenset({
    "Architecture", "Author", "Comment", "Config", "ConfigFrom", "Container", "ContainerConfig", "Containers",
    "Created", "CreatedAt", "Descriptor", "DockerVersion", "Endpoint", "GraphDriver", "ImageManifestDescriptor",
    "JobStatus", "Labels", "ManagerStatus", "Manifests", "Metadata", "NetworksAttachments", "Options", "OsVersion",
    "Parent", "Peers", "PreviousSpec", "RepoDigests", "RepoTags", "ServiceStatus", "Services", "SizeRootFs",
    "SizeRw", "Status", "UpdateStatus", "UsageData", "Variant", "VirtualSize",
})  # fmt: skip


# The one field of docker's rows that takes an argument.
_LABEL = re.compile(r"\.Label\s+(\"[^\"]*\"|`[^`]*`)")


class FormatTemplate:
    """A template that can be filled again and again; InvalidParameter says what of it is not understood."""

    def __init__(self, text: str) -> None:
        try:
            self._template = parse(_LABEL.sub(r"label . \1", text), _FUNCTIONS)
        except InvalidParameter as error:
            said = error.message.replace("template: expansion: ", "template: :1: ")
            raise InvalidParameter(f"failed to parse template: {said}") from None

    def fill(self, document: Any) -> str:
        def missing(value: object, name: str) -> object:
            if value is document and name not in _MAY_BE_OMITTED:
                raise InvalidParameter(f"template: .{name}: there is no {name!r}; --json shows what there is")
            return ABSENT

        # Whoever wrote it waits for it, and nobody else does.
        effort = Effort(steps=sys.maxsize, said=sys.maxsize)
        try:
            return self._template.render(document, _FUNCTIONS, effort, missing)
        except InvalidParameter as error:
            raise _told(error) from None


def _told(error: InvalidParameter) -> InvalidParameter:
    return InvalidParameter(error.message.replace("template: expansion: ", "template: "))


def _json(value: object) -> str:
    return json_text(json.dumps(None if value is ABSENT else value, ensure_ascii=False, separators=(",", ":")))


def _label(row: object, name: object) -> str:
    """Return one label of a row, which has all of them in one column; a comma may be part of a value."""
    found: dict[str, str] = {}
    last = ""
    for part in str(row.get("Labels") or "").split(",") if isinstance(row, Mapping) else ():
        key, equals, value = part.partition("=")
        if equals:
            last, found[key] = key, value
        elif last:
            found[last] += f",{part}"
    return found.get(str(name), "")


_FUNCTIONS: dict[str, Function] = {
    "label": _label,
    "json": _json,
    "upper": lambda value: str(value).upper(),
    "lower": lambda value: str(value).lower(),
    "title": lambda value: str(value).title(),
    "join": lambda values, separator: str.join(separator, values),
    "split": lambda value, separator: str.split(value, separator),
    "truncate": lambda value, most: value[:most],
}
