"""A graph as provenance has it: its operations in the JSON that BuildKit writes of them, numbered. Pure.

Sources of a client's session have no session in it, and addresses no passwords.
"""

import base64
from collections.abc import Sequence

from msgspec import Struct

from husk.builder.graph import op_json
from husk.builder.graph.graph import Graph, Location
from husk.builder.graph.op_json import Json, filled
from husk.builder.graph.operations import (
    Build,
    CacheMount,
    Diff,
    Edge,
    Exec,
    FileAction,
    Files,
    Merge,
    Mount,
    Operation,
    SecretMount,
    Source,
    SshMount,
    TmpfsMount,
)
from husk.builder.graph.schemes import shown


class StepNames(Struct, frozen=True):
    """`names` are those of the steps, by the digests of vertices."""

    definition: list[Json]
    names: dict[str, str]

    @property
    def document(self) -> Json:
        return {"llbDefinition": self.definition, "digestMapping": self.names}


def steps_of(graph: Graph, edge: Edge) -> StepNames:
    names: dict[str, str] = {}
    steps: list[Json] = []
    for vertex in graph.needed_for(edge):
        operation = vertex.operation
        name = names[vertex.digest] = f"step{len(steps)}"
        steps.append(_step(name, _operation(operation), operation.inputs, names))
    steps.append(_step(f"step{len(steps)}", {"Op": {}}, [edge], names))
    return StepNames(steps, names)


def source_of(graph: Graph, steps: StepNames, loaded: Operation | None) -> Json:
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
        case Source() as body:
            told = shown(body)
            return {"source": filled({"identifier": told.identifier, "attrs": told.attributes})}
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
    hosts: list[Json] = [{"Host": name, "IP": address} for name, address in body.process.extra_hosts]
    return op_json.execution(body, op_json.process(body.process, hosts), [_mount(one) for one in body.mounts])


def _mount(mount: Mount) -> Json:
    document: Json = {
        "input": mount.input,
        "selector": mount.selector,
        "dest": mount.target,
        "output": mount.output,
        "readonly": mount.read_only,
        "mountType": op_json.KINDS[type(mount.kind)],
    }
    match mount.kind:
        case TmpfsMount(size):
            document["TmpfsOpt"] = filled({"size": size})
        case CacheMount(id, sharing):
            document["cacheOpt"] = filled({"ID": id, "sharing": op_json.SHARING[sharing]})
        case SecretMount() as secret:
            document["secretOpt"] = op_json.granted(secret)
        case SshMount() as agent:
            document["SSHOpt"] = op_json.granted(agent)
    return filled(document)


# --- files -----------------------------------------------------------------------------------------------------------


def _action(step: FileAction) -> Json:
    name, document = op_json.action(step.action)
    places = {"input": step.input, "secondaryInput": step.second_input, "output": step.output}
    return {**places, "Action": {name: document}}
