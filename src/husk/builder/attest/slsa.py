"""Documents of provenance, by SLSA 0.2 and 1, with the fields that BuildKit gives them. Pure."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec
from msgspec import Struct

from husk.builder.attest.wanted import V1, Provenance
from husk.builder.dockerfile import git_refs
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.graph.llb_json import Json, filled
from husk.builder.graph.schemes import redacted
from husk.engine.model.clock import shortest_rfc3339
from husk.registry.manifest import Descriptor, Platform
from husk.registry.reference import Reference

PREDICATE_V02 = "https://slsa.dev/provenance/v0.2"
PREDICATE_V1 = "https://slsa.dev/provenance/v1"
_TYPE_V02 = "https://mobyproject.org/buildkit@v1"
_TYPE_V1 = "https://github.com/moby/buildkit/blob/master/docs/attestations/slsa-definitions.md"
# What belongs to the host that built, or is said elsewhere.
_NOT_SHOWN = ("cgroup-parent", "image-resolve-mode", "platform", "cache-imports")
_ADDRESSES = ("context:", "vcs:source")
_VALUES = ("build-arg:", "label:")

Layers = Mapping[str, Sequence[Descriptor]]


class Material(Struct, frozen=True):
    """A source, and what it was: an algorithm and a value, `sha256:…`; empty if that is not known."""

    uri: str
    digest: str = ""

    @property
    def document(self) -> Json:
        algorithm, _, value = self.digest.partition(":")
        return {"uri": self.uri, **({"digest": {algorithm: value}} if value else {})}


class Granted(Struct, frozen=True):
    """A secret or an agent that a step could use: its name, never its value."""

    id: str
    optional: bool = False

    @property
    def document(self) -> Json:
        return filled({"id": self.id, "optional": self.optional})


class Captured(Struct, frozen=True, kw_only=True):
    """The request of a build, and the sources, secrets and agents that it used."""

    frontend: str = ""
    attributes: Mapping[str, str] = {}
    materials: Sequence[Material] = ()
    locals: Sequence[str] = ()
    secrets: Sequence[Granted] = ()
    agents: Sequence[Granted] = ()
    network: bool = False
    incomplete: bool = False

    @property
    def has_all_materials(self) -> bool:
        """A directory of the client's has no digest that anybody could compare."""
        return not self.incomplete and not self.locals


class ProvenanceRun(Struct, frozen=True, kw_only=True):
    """One build: when, where, and of what steps, if they are wanted."""

    id: str
    platform: str
    started: int
    finished: int
    config: Json = {}
    source: Json = {}


def type_of(wanted: Provenance) -> str:
    return PREDICATE_V1 if wanted.version == V1 else PREDICATE_V02


def document(wanted: Provenance, captured: Captured, run: ProvenanceRun, layers: Layers | None = None) -> bytes:
    """`layers` are those of the outputs of steps, as they go out."""
    arguments, where, vcs = _split(captured)
    is_whole = bool(captured.frontend)
    if not wanted.everything:
        kept = {name: value for name, value in arguments.items() if not name.startswith(_VALUES)}
        is_whole = is_whole and kept == arguments
        arguments = kept
    request = filled(
        {
            "frontend": captured.frontend,
            "args": arguments,
            "secrets": [one.document for one in captured.secrets] if wanted.everything else [],
            "ssh": [one.document for one in captured.agents] if wanted.everything else [],
            "locals": [{"name": name} for name in captured.locals],
        }
    )
    metadata = filled({"vcs": vcs, "source": run.source, "layers": _layers(layers)})
    shape = _v1 if wanted.version == V1 else _v02
    return msgspec.json.encode(shape(wanted, captured, run, where, request, metadata, is_whole))


def _v02(
    wanted: Provenance,
    captured: Captured,
    run: ProvenanceRun,
    where: Json,
    request: Json,
    metadata: Json,
    is_whole: bool,
) -> Json:
    complete = {"parameters": is_whole, "environment": True, "materials": captured.has_all_materials}
    hermetic = captured.has_all_materials and not captured.network
    path = {"entryPoint": where["path"]} if "path" in where else {}
    return {
        "builder": {"id": wanted.builder},
        "buildType": _TYPE_V02,
        **filled({"materials": [one.document for one in captured.materials]}),
        "invocation": {
            "configSource": {**{name: value for name, value in where.items() if name != "path"}, **path},
            "parameters": request,
            "environment": {"platform": run.platform},
        },
        **filled({"buildConfig": run.config}),
        "metadata": {
            "buildInvocationID": run.id,
            "buildStartedOn": shortest_rfc3339(run.started),
            "buildFinishedOn": shortest_rfc3339(run.finished),
            "completeness": complete,
            "reproducible": wanted.reproducible,
            f"{_TYPE_V02}#metadata": metadata,
            **filled({f"{_TYPE_V02}#hermetic": hermetic}),
        },
    }


def _v1(
    wanted: Provenance,
    captured: Captured,
    run: ProvenanceRun,
    where: Json,
    request: Json,
    metadata: Json,
    is_whole: bool,
) -> Json:
    hermetic = captured.has_all_materials and not captured.network
    return {
        "buildDefinition": {
            "buildType": _TYPE_V1,
            **filled({"resolvedDependencies": [one.document for one in captured.materials]}),
            "externalParameters": {"configSource": where, "request": request},
            "internalParameters": {**filled({"buildConfig": run.config}), "builderPlatform": run.platform},
        },
        "runDetails": {
            "builder": {"id": wanted.builder},
            "metadata": {
                "invocationId": run.id,
                "startedOn": shortest_rfc3339(run.started),
                "finishedOn": shortest_rfc3339(run.finished),
                "buildkit_metadata": metadata,
                **filled({"buildkit_hermetic": hermetic}),
                "buildkit_completeness": {
                    "request": is_whole,
                    "resolvedDependencies": captured.has_all_materials,
                },
                **filled({"buildkit_reproducible": wanted.reproducible}),
            },
        },
    }


def _split(captured: Captured) -> tuple[dict[str, str], Json, dict[str, str]]:
    """The attributes of a request: its arguments, where the configuration comes from, and what the client's version
    control says."""
    attributes = dict(captured.attributes)
    context = attributes.get("contextkey") or ("input:context" if attributes.get("input:context") else "context")
    where: Json = {}
    if address := attributes.pop(context, ""):
        found = next((one for one in captured.materials if one.uri == _material_uri(address)), None)
        where = {**(found.document if found else {}), "uri": redacted(address)}
    if path := attributes.pop("filename", ""):
        where["path"] = path
    vcs: dict[str, str] = {}
    arguments: dict[str, str] = {}
    for name, value in attributes.items():
        if name in _NOT_SHOWN or name.startswith("attest:"):
            continue
        shown = redacted(value) if name.startswith(_ADDRESSES) else value
        if not name.startswith("vcs:"):
            arguments[name] = shown
        elif shown:
            vcs[name.removeprefix("vcs:")] = shown
    return dict(sorted(arguments.items())), where, vcs


def _material_uri(address: str) -> str:
    """Return the name that the source of a context has among the materials."""
    try:
        repository = git_refs.parse(address)
    except DockerfileError:
        repository = None
    return git_uri(repository) if repository else redacted(address)


def git_uri(repository: git_refs.GitRef) -> str:
    return redacted(repository.remote) + (f"#{repository.ref}" if repository.ref else "")


def image_uri(name: Reference, platform: Platform | None, kind: str = "docker") -> str:
    """An image as package URLs name it: by its tag, or by its digest if it has none."""
    path = "/".join(quote(part, safe=":") for part in name.familiar_name.split("/"))
    tag = f"@{quote(name.tag)}" if name.tag else ""
    details = [f"digest={quote(name.digest, safe=':')}"] if name.digest and not name.tag else []
    details += [f"platform={quote(str(platform), safe='')}"] if platform else []
    return f"pkg:{kind}/{path}{tag}" + (f"?{'&'.join(details)}" if details else "")


def _layers(layers: Layers | None) -> Json:
    return {
        output: [[{"mediaType": one.media_type, "digest": one.digest, "size": one.size} for one in described]]
        for output, described in (layers or {}).items()
    }
