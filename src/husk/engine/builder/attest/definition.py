"""A graph as provenance has it: its operations in the JSON that BuildKit writes of them, numbered. Pure.

Sources of a client's session have no session in it, and addresses no passwords.
"""

import base64
from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from husk.engine.builder.graph import Graph, Location
from husk.engine.builder.operations import (
    BindMount,
    Build,
    CacheMount,
    Copy,
    Diff,
    Edge,
    Exec,
    FileAction,
    Files,
    MakeDirectory,
    MakeFile,
    Merge,
    Mount,
    Operation,
    Owner,
    Remove,
    SecretMount,
    Source,
    SshMount,
    Symlink,
    TmpfsMount,
)

Json = dict[str, object]

_OF_SESSION = ("local.session", "local.unique", "oci.session")
_NETWORKS = {"sandbox": 0, "host": 1, "none": 2}
_SHARING = {"shared": 0, "private": 1, "locked": 2}
_KINDS = {BindMount: 0, SecretMount: 1, SshMount: 2, CacheMount: 3, TmpfsMount: 4}


class Steps(Struct, frozen=True):
    """`names` are those of the steps, by the digests of vertices."""

    definition: list[Json]
    names: dict[str, str]

    @property
    def document(self) -> Json:
        return {"llbDefinition": self.definition, "digestMapping": self.names}


def steps_of(graph: Graph, edge: Edge) -> Steps:
    names: dict[str, str] = {}
    steps: list[Json] = []
    for vertex in graph.needed_for(edge):
        operation = vertex.operation
        name = names[vertex.digest] = f"step{len(steps)}"
        steps.append(_step(name, _operation(operation), operation.inputs, names))
    steps.append(_step(f"step{len(steps)}", {"Op": {}}, [edge], names))
    return Steps(steps, names)


def source_of(graph: Graph, steps: Steps, loaded: Operation | None) -> Json:
    """The files that a graph was made from, and which lines its steps are; `loaded` is how they came."""
    document: Json = {}
    if loaded is not None:
        alone = Graph()
        document = steps_of(alone, alone.add(loaded)).document
    infos = [
        {
            "filename": file.name,
            "language": file.language,
            "data": base64.b64encode(file.content).decode(),
            **document,
        }
        for file in graph.files
    ]
    locations = {
        name: {"locations": [_location(one) for one in graph[digest].locations]}
        for digest, name in steps.names.items()
        if graph[digest].locations
    }
    return {"locations": locations, "infos": infos}


def redacted(address: str) -> str:
    """An address without the password that may be in it."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return address
    who, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"xxxxx:xxxxx@{host}").geturl() if at and ":" in who else address


def _step(name: str, op: Json, inputs: Sequence[Edge], names: dict[str, str]) -> Json:
    taken = [f"{names[edge.digest]}:{edge.output}" for edge in inputs]
    return filled({"id": name, "op": op, "inputs": taken})


def _location(place: Location) -> Json:
    lines = {"start": {"line": place.start}, "end": {"line": place.end}}
    return filled({"sourceIndex": place.file, "ranges": [lines]})


def _operation(operation: Operation) -> Json:
    document: Json = {"Op": _body(operation)}
    if platform := operation.platform:
        document["platform"] = filled(
            {
                "Architecture": platform.architecture,
                "OS": platform.os,
                "Variant": platform.variant,
                "OSVersion": platform.os_version,
                "OSFeatures": list(platform.os_features),
            }
        )
    return document | {"constraints": {}}


def _body(operation: Operation) -> Json:
    match operation.body:
        case Source(identifier, attributes):
            shown = {name: redacted(value) for name, value in attributes.items() if name not in _OF_SESSION}
            return {"source": filled({"identifier": redacted(identifier), "attrs": shown})}
        case Exec() as body:
            return {"exec": _exec(body)}
        case Files(actions):
            return {"file": {"actions": [_action(one) for one in actions]}}
        case Merge():
            return {"merge": {"inputs": [filled({"input": one}) for one in range(len(operation.inputs))]}}
        case Diff(lower, upper):
            return {"diff": {"lower": filled({"input": lower}), "upper": filled({"input": upper})}}
        case Build(builder, inputs, attributes):
            taken = {name: filled({"input": number}) for name, number in inputs.items()}
            return {"build": filled({"builder": builder, "inputs": taken, "attrs": attributes})}


# --- processes -------------------------------------------------------------------------------------------------------


def _exec(body: Exec) -> Json:
    process = body.process
    meta = filled(
        {
            "args": process.args,
            "env": process.env,
            "cwd": process.cwd,
            "user": process.user,
            "extraHosts": [{"Host": name, "IP": address} for name, address in process.extra_hosts],
            "hostname": process.hostname,
            "ulimit": [{"Name": one.name, "Soft": one.soft, "Hard": one.hard} for one in process.ulimits],
            "cgroupParent": process.cgroup_parent,
            "removeMountStubsRecursive": process.remove_stubs,
            "validExitCodes": process.valid_exit_codes,
        }
    )
    secrets = [filled({"ID": one.id, "name": one.name, "optional": one.optional}) for one in body.secret_env]
    return filled(
        {
            "meta": meta,
            "mounts": [_mount(one) for one in body.mounts],
            "network": _NETWORKS[body.network],
            "security": int(body.insecure),
            "secretenv": secrets,
        }
    )


def _mount(mount: Mount) -> Json:
    document: Json = {
        "input": mount.input,
        "selector": mount.selector,
        "dest": mount.target,
        "output": mount.output,
        "readonly": mount.read_only,
        "mountType": _KINDS[type(mount.kind)],
    }
    match mount.kind:
        case TmpfsMount(size):
            document["TmpfsOpt"] = filled({"size": size})
        case CacheMount(id, sharing):
            document["cacheOpt"] = filled({"ID": id, "sharing": _SHARING[sharing]})
        case SecretMount() as secret:
            document["secretOpt"] = _granted(secret)
        case SshMount() as agent:
            document["SSHOpt"] = _granted(agent)
    return filled(document)


def _granted(kind: SecretMount | SshMount) -> Json:
    return filled({"ID": kind.id, "uid": kind.uid, "gid": kind.gid, "mode": kind.mode, "optional": kind.optional})


# --- files -----------------------------------------------------------------------------------------------------------


def _action(step: FileAction) -> Json:
    action = step.action
    owner: Json = {} if isinstance(action, Remove) else _owners(action.user, action.group)
    match action:
        case Copy():
            name, document = "copy", _copy(action, owner)
        case MakeFile():
            data = base64.b64encode(action.data).decode()
            document = {"path": action.path, "mode": action.mode, "data": data, **owner, "timestamp": _time(action)}
            name = "mkfile"
        case MakeDirectory():
            name, document = "mkdir", {"path": action.path, "mode": action.mode, "makeParents": action.make_parents}
            document |= {**owner, "timestamp": _time(action)}
        case Symlink():
            name, document = "symlink", {"oldpath": action.target, "newpath": action.path, **owner}
            document["timestamp"] = _time(action)
        case Remove():
            name, document = "rm", {"path": action.path, "allowNotFound": action.may_be_missing}
            document["allowWildcard"] = action.wildcards
    places = {"input": step.input, "secondaryInput": step.second_input, "output": step.output}
    return {**places, "Action": {name: filled(document)}}


def _copy(copy: Copy, owner: Json) -> Json:
    return {
        "src": copy.source,
        "dest": copy.destination,
        **owner,
        "mode": -1 if copy.mode is None else copy.mode,
        "followSymlink": copy.follow_links,
        "dirCopyContents": copy.contents_only,
        "attemptUnpackDockerCompatibility": copy.unpack,
        "createDestPath": copy.make_parents,
        "allowWildcard": copy.wildcards,
        "allowEmptyWildcard": copy.may_match_nothing,
        "timestamp": _time(copy),
        "include_patterns": copy.include,
        "exclude_patterns": copy.exclude,
        "alwaysReplaceExistingDestPaths": copy.replace,
        "modeStr": copy.symbolic_mode,
        "required_paths": copy.required,
    }


def _time(action: Copy | MakeFile | MakeDirectory | Symlink) -> int:
    return -1 if action.timestamp is None else action.timestamp


def _owners(user: Owner | None, group: Owner | None) -> Json:
    owners = {name: _owner(one) for name, one in (("user", user), ("group", group)) if one}
    return {"owner": owners} if owners else {}


def _owner(owner: Owner) -> Json:
    if owner.name:
        return {"User": {"byName": filled({"name": owner.name, "input": owner.input})}}
    return {"User": filled({"byId": owner.number or 0})}


def filled(document: Json) -> Json:
    """Without what is empty, which Go leaves out."""
    return {name: value for name, value in document.items() if value}
