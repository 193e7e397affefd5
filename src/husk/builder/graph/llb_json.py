"""Messages of LLB in the JSON that Go writes of BuildKit's structures: keys are digests of it, provenance shows it.

The order of fields, and what is left out when it is empty, is that of those structures: a byte that differs is another
key. Pure.
"""

import base64
from collections.abc import Mapping

from husk.builder.graph import ops
from husk.rpc.protobuf import Message

Json = dict[str, object]

# The names of fields that are not those of ours with humps for underscores.
_NAMES: Mapping[type[Message], Mapping[str, str]] = {
    ops.HostIP: {"host": "Host", "ip": "IP"},
    ops.Ulimit: {"name": "Name", "soft": "Soft", "hard": "Hard"},
    ops.SecretEnv: {"id": "ID"},
    ops.CacheOpt: {"id": "ID"},
    ops.SecretOpt: {"id": "ID"},
    ops.SSHOpt: {"id": "ID"},
    ops.Mount: {"tmpfs_opt": "TmpfsOpt", "ssh_opt": "SSHOpt"},
    ops.FileActionCopy: {
        "attempt_unpack": "attemptUnpackDockerCompatibility",
        "include_patterns": "include_patterns",
        "exclude_patterns": "exclude_patterns",
        "always_replace": "alwaysReplaceExistingDestPaths",
        "required_paths": "required_paths",
    },
    ops.Platform: {"architecture": "Architecture", "os": "OS", "variant": "Variant"}
    | {"os_version": "OSVersion", "os_features": "OSFeatures"},
}
# Structures in which one of several fields has a value, and the name around it.
_ONE_OF: Mapping[type[Message], tuple[str, set[str]]] = {
    ops.Op: ("Op", {"exec", "source", "file", "build", "merge", "diff"}),
    ops.FileAction: ("Action", {"copy", "mkfile", "mkdir", "rm", "symlink"}),
    ops.UserOpt: ("User", {"by_name", "by_id"}),
}
# Fields that are written though they are empty.
_KEPT: Mapping[type[Message], set[str]] = {ops.FileAction: {"input", "secondary_input", "output"}}


def document(message: Message) -> Json:
    """Return the fields of a message that have a value, by Go's names."""
    kind = type(message)
    around, several = _ONE_OF.get(kind, ("", set()))
    names, kept = _NAMES.get(kind, {}), _KEPT.get(kind, set())
    found: Json = {}
    for field in message.__struct_fields__:
        value = getattr(message, field)
        if value is None:
            continue
        place = found
        if field in several:
            place = found[around] = {}
        if value or field in kept:
            place[names.get(field) or _humps(field)] = _value(value)
    return found


def filled(fields: Json) -> Json:
    """Return the fields without those that are empty, which Go leaves out."""
    return {name: value for name, value in fields.items() if value}


def _value(value: object) -> object:
    match value:
        case Message():
            return document(value)
        case bytes():
            return base64.b64encode(value).decode()
        case list():
            return [_value(one) for one in value]
        case dict():
            return {name: _value(one) for name, one in value.items()}
    return value


def _humps(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
