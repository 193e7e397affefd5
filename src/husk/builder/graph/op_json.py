"""Operations in the JSON that Go writes of BuildKit's structures: keys are digests of it, provenance shows it. Pure.

The order of fields, and what is left out when it is empty, is that of those structures: a byte that differs is another
key.
"""

import base64

from msgspec import Struct

from husk.builder.graph.operations import (
    BindMount,
    CacheMount,
    Copy,
    Exec,
    MakeDirectory,
    MakeFile,
    Owner,
    Process,
    Remove,
    SecretMount,
    SshMount,
    Symlink,
    TmpfsMount,
)

Json = dict[str, object]
Action = Copy | MakeFile | MakeDirectory | Symlink | Remove

NETWORKS = {"sandbox": 0, "host": 1, "none": 2}
SHARING = {"shared": 0, "private": 1, "locked": 2}
KINDS = {BindMount: 0, SecretMount: 1, SshMount: 2, CacheMount: 3, TmpfsMount: 4}


class NeverOmitted(Struct, frozen=True):
    """A structure that is written though it is empty."""

    value: Json


def filled(document: Json) -> Json:
    """Without what is empty, which Go leaves out."""
    return {
        name: value.value if isinstance(value, NeverOmitted) else value
        for name, value in document.items()
        if isinstance(value, NeverOmitted) or value
    }


def process(wanted: Process, hosts: list[Json]) -> Json:
    """`hosts` are its extra hosts, as they are to be told."""
    return filled(
        {
            "args": wanted.args,
            "env": wanted.env,
            "cwd": wanted.cwd,
            "user": wanted.user,
            "extraHosts": hosts,
            "hostname": wanted.hostname,
            "ulimit": [filled({"Name": one.name, "Soft": one.soft, "Hard": one.hard}) for one in wanted.ulimits],
            "cgroupParent": wanted.cgroup_parent,
            "removeMountStubsRecursive": wanted.remove_stubs,
            "validExitCodes": wanted.valid_exit_codes,
        }
    )


def execution(body: Exec, meta: Json, mounts: list[Json]) -> Json:
    return filled(
        {
            "meta": meta,
            "mounts": mounts,
            "network": NETWORKS[body.network],
            "security": int(body.insecure),
            "secretenv": [
                filled({"ID": one.id, "name": one.name, "optional": one.optional}) for one in body.secret_env
            ],
        }
    )


def granted(kind: SecretMount | SshMount) -> Json:
    return filled({"ID": kind.id, "uid": kind.uid, "gid": kind.gid, "mode": kind.mode, "optional": kind.optional})


def action(wanted: Action) -> tuple[str, Json]:
    """The name of an action, and what it is."""
    match wanted:
        case Copy():
            name, document = "copy", _copy(wanted)
        case MakeFile():
            data = base64.b64encode(wanted.data).decode()
            name, document = "mkfile", {"path": wanted.path, "mode": wanted.mode, "data": data, **_owned(wanted)}
        case MakeDirectory():
            name, document = "mkdir", {"path": wanted.path, "mode": wanted.mode, "makeParents": wanted.make_parents}
            document |= _owned(wanted)
        case Symlink():
            name, document = "symlink", {"oldpath": wanted.target, "newpath": wanted.path, **_owned(wanted)}
        case Remove():
            name, document = "rm", {"path": wanted.path, "allowNotFound": wanted.may_be_missing}
            document["allowWildcard"] = wanted.wildcards
    return name, filled(document)


def _copy(copy: Copy) -> Json:
    owned = _owned(copy)
    return {
        "src": copy.source,
        "dest": copy.destination,
        "owner": owned["owner"],
        "mode": -1 if copy.mode is None else copy.mode,
        "followSymlink": copy.follow_links,
        "dirCopyContents": copy.contents_only,
        "attemptUnpackDockerCompatibility": copy.unpack,
        "createDestPath": copy.make_parents,
        "allowWildcard": copy.wildcards,
        "allowEmptyWildcard": copy.may_match_nothing,
        "timestamp": owned["timestamp"],
        "include_patterns": copy.include,
        "exclude_patterns": copy.exclude,
        "alwaysReplaceExistingDestPaths": copy.replace,
        "modeStr": copy.symbolic_mode,
        "required_paths": copy.required,
    }


def _owned(made: Copy | MakeFile | MakeDirectory | Symlink) -> Json:
    owners = {name: _owner(one) for name, one in (("user", made.user), ("group", made.group)) if one}
    return {"owner": owners, "timestamp": -1 if made.timestamp is None else made.timestamp}


def _owner(owner: Owner) -> Json:
    if owner.name:
        return {"User": {"byName": filled({"name": owner.name, "input": owner.input})}}
    return {"User": filled({"byId": owner.number or 0})}
