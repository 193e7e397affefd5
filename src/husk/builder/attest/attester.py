"""States what is known of a result when it is made, before it is exported.

A graph as provenance has it: its operations in the JSON that BuildKit writes of them, numbered.

Sources of a client's session have no session in it, and addresses no passwords.
"""

import asyncio
import base64
from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct, structs
from msgspec.structs import replace

from husk.builder.attest import slsa
from husk.builder.attest.materials import Materials
from husk.builder.attest.sbom import Scanner
from husk.builder.attest.slsa import Captured, ProvenanceRun
from husk.builder.attest.wanted import Provenance, WantedAttestations
from husk.builder.exporters.parts import refs_of
from husk.builder.frontend.dockerfile_frontend import BUILD_DEFINITION
from husk.builder.graph import llb_write, stacks
from husk.builder.graph.graph import Graph, Location
from husk.builder.graph.llb_json import Json, document, filled
from husk.builder.graph.operations import Edge, Exec, Operation, Source
from husk.builder.graph.schemes import shown
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.results import Completed, Predicate, Result
from husk.builder.jobs.status_log import VertexTold
from husk.builder.solver.refs import Ref
from husk.builder.solver.solver import BuildRun
from husk.engine.model.clock import now_ns
from husk.registry.manifest import Descriptor, host_platform

PROVENANCE_FILE = "provenance.json"
# What is stated about larger graphs is written in a thread.
_AT_ONCE = 200


class Attester:
    def __init__(self, materials: Materials, scanner: Callable[[], Scanner]) -> None:
        self._materials = materials
        self._scanner = scanner

    async def attest(self, job: Job, result: Result, wanted: WantedAttestations) -> Result:
        """The result with what is stated about it. The job gets what its history is to know."""
        if not result.all:
            return result
        stated: dict[str, list[Predicate]] = {}
        kept: dict[str, list[Predicate]] = {}
        refs = refs_of(result)
        # What was used is asked before the scanner adds steps of its own.
        results = {vertex.digest for ref in result.all if ref.edge for vertex in ref.graph.needed_for(ref.edge)}
        abouts = {id: await self._about(job, results, ref) for id, ref in refs.items()}
        for id, about in abouts.items():
            found = [] if wanted.sbom is None else await self._scanner().scan(job, id, refs[id], wanted.sbom)
            kept[id] = [await about.predicate(wanted.history), *found]
            if wanted.provenance is not None:
                found = [*found, await about.predicate(wanted.provenance)]
            stated[id] = found
        job.predicates = kept
        return structs.replace(result, predicates=stated)

    async def _about(self, job: Job, results: Collection[str], ref: Ref) -> "_About":
        """`results` are the vertices that lead to any of them."""
        captured = await self._materials.of(_operations(job, results, ref), job.session)
        if (question := job.question_of(ref)) is not None:
            captured = structs.replace(captured, frontend=question.frontend, attributes=question.attributes)
        return _About(job, ref, captured)


def _operations(job: Job, results: Collection[str], ref: Ref) -> Iterator[Operation]:
    """Yield the operations that led to a ref, and those done beside it: to load a Dockerfile, to run a frontend."""
    if ref.edge is not None:
        yield from (vertex.operation for vertex in ref.graph.needed_for(ref.edge))
    beside = {one.vertex.digest: one for one in job.log.told if isinstance(one, VertexTold)}
    yield from (one.vertex.operation for digest, one in beside.items() if digest not in results and not one.error)


class _About:
    """One ref, about which something may be stated."""

    def __init__(self, job: Job, ref: Ref, captured: Captured) -> None:
        self._job = job
        self._ref = ref
        self._captured = captured

    async def predicate(self, wanted: Provenance) -> Predicate:
        run = ProvenanceRun(
            id=self._job.id, platform=str(host_platform()), started=self._job.started, finished=now_ns()
        )
        build, whole = await self._ref.build(), await self._ref.stack()
        loaded = self._loaded()

        def state() -> Predicate:
            return self._stated(wanted, run, build, whole, loaded)

        return state() if len(self._ref.graph) < _AT_ONCE else await asyncio.to_thread(state)

    def _stated(
        self, wanted: Provenance, run: ProvenanceRun, build: BuildRun | None, whole: str, loaded: Operation | None
    ) -> Predicate:
        counts: dict[str, int] = {}
        if wanted.everything and self._ref.edge is not None:
            graph = self._ref.graph
            steps = steps_of(graph, self._ref.edge)
            source = source_of(graph, steps, loaded) if graph.files else {}
            run = structs.replace(run, config=steps.document, source=source)
            counts = _layer_counts(steps.names, build, whole)
        return Predicate(
            type=slsa.type_of(wanted),
            path=PROVENANCE_FILE,
            body=slsa.document(wanted, self._captured, run),
            inline_only=wanted.inline_only,
            completed=_with_layers(wanted, self._captured, run, counts) if counts else None,
        )

    def _loaded(self) -> Operation | None:
        """Return the operation that brought the Dockerfile; None if the build's log tells of none."""
        vertices = (one.vertex for one in self._job.log.told if isinstance(one, VertexTold))
        return next((one.operation for one in vertices if one.name.startswith(BUILD_DEFINITION)), None)


def _layer_counts(names: dict[str, str], build: BuildRun | None, whole: str) -> dict[str, int]:
    """Count the layers of the result that an output of a step has, by the names of steps with numbers of outputs."""
    counts = {}
    for digest, name in names.items():
        record = build.known(digest) if build else None
        for number, output in enumerate(record.outputs if record else []):
            if output and stacks.above(output, whole) is not None:
                counts[f"{name}:{number}"] = len(stacks.elements(output))
    return counts


def _with_layers(wanted: Provenance, captured: Captured, run: ProvenanceRun, counts: dict[str, int]) -> Completed:
    def completed(layers: list[Descriptor]) -> bytes:
        return slsa.document(wanted, captured, run, {name: layers[:count] for name, count in counts.items()})

    return completed


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
