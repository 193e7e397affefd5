"""A graph as provenance has it: its operations in the JSON that BuildKit writes of them, numbered. Pure.

Sources of a client's session have no session in it, and addresses no passwords.
"""

import base64
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from husk.builder.graph import llb_write
from husk.builder.graph.graph import Graph, Location
from husk.builder.graph.llb_json import Json, document, filled
from husk.builder.graph.operations import Edge, Exec, Operation, Source
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
    came: Json = {}
    if loaded is not None:
        alone = Graph()
        came = steps_of(alone, alone.add(loaded)).document
    infos = [
        {
            "filename": file.name,
            "language": file.language,
            "data": base64.b64encode(file.content).decode(),
            **came,
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
    match operation.body:
        case Source() as body:
            operation = replace(operation, body=shown(body))
        case Exec() as body:
            operation = replace(operation, body=replace(body, process=replace(body.process, proxy={})))
    return document(replace(llb_write.operation(operation), inputs=[])) | {"constraints": {}}
