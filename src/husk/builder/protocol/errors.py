"""Errors of ours as clients of BuildKit know them: a code, a message, and where in a file it comes from."""

import base64
from collections.abc import Sequence

import msgspec

from husk.builder.graph import operations, ops
from husk.builder.graph.graph import Location, SourceFile
from husk.builder.graph.llb_json import Json, filled
from husk.builder.graph.llb_write import source_info
from husk.builder.jobs.failure import BuildFailed, FailedStep, MissingCapability, UnknownQuestion
from husk.builder.protocol.messages.common import Any, Status
from husk.builder.solver.source_rules import Action, SourceDenied
from husk.builder.store import file_actions
from husk.errors import (
    Conflict,
    Forbidden,
    HuskError,
    InvalidParameter,
    NotFound,
    NotImplementedYet,
    SystemFault,
    Unauthorized,
    Unavailable,
)
from husk.rpc.grpc import status
from husk.rpc.grpc.status import GrpcError

_CODES: dict[type[HuskError], int] = {
    InvalidParameter: status.INVALID_ARGUMENT,
    Unauthorized: status.UNAUTHENTICATED,
    Forbidden: status.PERMISSION_DENIED,
    NotFound: status.NOT_FOUND,
    Conflict: status.ALREADY_EXISTS,
    NotImplementedYet: status.UNIMPLEMENTED,
    Unavailable: status.UNAVAILABLE,
    SystemFault: status.INTERNAL,
}
_KINDS = {code: kind for kind, code in _CODES.items()}

# Details are JSON, by types that BuildKit's clients have registered.
_TYPES = "github.com/moby/buildkit/errdefs"
# Of how a file came more is not told: it is read to be written as JSON.
_LARGEST_DEFINITION = 1 << 16
_DECISION = "github.com/moby/buildkit/policysession.DecisionResponse+json"


class FailedElsewhere(BuildFailed):
    """A failure at a client or in a frontend, with the details that were told of it there."""

    def __init__(self, message: str, details: list[Any]) -> None:
        super().__init__(message)
        self.details = details


def to_grpc(error: HuskError) -> GrpcError:
    """An error as the answer to a call."""
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), status.UNKNOWN)
    return GrpcError(code, error.message)


def failed_build(error: HuskError, step: FailedStep | None = None) -> GrpcError:
    """Tell a client why its build failed. It shows the message alone only if there is no code that means something.

    `step` is what a client needs to know to run processes where one has failed.
    """
    described = _described(error) + ([_any("Solve", _solve(step))] if step else [])
    details = Status(status.UNKNOWN, error.message, described).encode() if described else b""
    return GrpcError(status.UNKNOWN, error.message, details)


def from_status(told: Status) -> HuskError:
    """Turn the status with which a client says that its side failed into an error of ours."""
    message = told.message or "the client's frontend failed"
    return FailedElsewhere(message, told.details) if told.details else _KINDS.get(told.code, HuskError)(message)


def _described(error: HuskError) -> list[Any]:
    described: list[Any] = []
    if isinstance(error, FailedElsewhere):
        return error.details
    if isinstance(error, UnknownQuestion):
        return [_any("Subrequest", {"name": error.name})]
    if isinstance(error, MissingCapability):
        return [_any("FrontendCap", {"name": error.name})]
    if isinstance(error, SourceDenied):
        messages = [{"message": one} for one in error.said]
        content = {"action": int(Action.DENY), "denyMessages": messages}
        return [Any(_DECISION, msgspec.json.encode(content))] if messages else []
    if not isinstance(error, BuildFailed):
        return described
    if error.vertex:
        described.append(_any("Vertex", {"digest": error.vertex}))
    if error.source and error.locations:
        described.append(_any("Source", _source(error.source, error.locations)))
    return described


def _source(file: SourceFile, places: Sequence[Location]) -> dict[str, object]:
    told = source_info(file)
    info: Json = {"filename": told.filename, "data": _encoded(told.data), "language": told.language}
    if told.definition and len(told.definition) <= _LARGEST_DEFINITION:
        info["definition"] = _definition(told.definition)
    return {"info": filled(info), "ranges": [{"start": _start(one), "end": _end(one)} for one in places]}


def _start(place: Location) -> Json:
    return filled({"line": place.start, "character": place.first_letter})


def _end(place: Location) -> Json:
    return filled({"line": place.end, "character": place.last_letter})


def _definition(data: bytes) -> Json:
    """Read a definition that a frontend sent, as JSON; empty where it is none, for a frontend may send anything."""
    try:
        read = ops.Definition.decode(data)
    except HuskError:
        return {}
    names = {digest: {"description": one.description} for digest, one in read.metadata.items() if one.description}
    return filled({"def": [_encoded(one) for one in read.definition], "metadata": names})


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _solve(step: FailedStep) -> dict[str, object]:
    """A step in the words of the protocol's JSON. Mounts are as it has left them, where that was kept."""
    process = step.body.process
    mounts = []
    for one in step.body.mounts:
        mount: dict[str, object] = {"input": one.input, "dest": one.target, "selector": one.selector}
        mount |= {"output": one.output, "readonly": one.read_only}
        match one.kind:
            case operations.CacheMount(id=id):
                mount |= {"mountType": "CACHE", "cacheOpt": {"ID": id}}
            case operations.TmpfsMount():
                mount |= {"mountType": "TMPFS"}
            case operations.SecretMount(id=id, mode=mode):
                mount |= {"mountType": "SECRET", "secretOpt": {"ID": id, "mode": mode, "optional": True}}
            case operations.SshMount(id=id, mode=mode):
                mount |= {"mountType": "SSH", "SSHOpt": {"ID": id, "mode": mode, "optional": True}}
        mounts.append(mount)
    meta = {"args": process.args, "env": process.env, "cwd": process.cwd, "user": process.user}
    ids = [_left(step, one) for one in step.body.mounts]
    return {"inputIDs": step.inputs, "mountIDs": ids, "op": {"exec": {"meta": meta, "mounts": mounts}}}


def _left(step: FailedStep, mount: operations.ExecMount) -> str:
    if 0 <= mount.output < len(step.outputs) and step.outputs[mount.output]:
        return step.outputs[mount.output]
    return step.inputs[mount.input] if mount.input != file_actions.NONE else ""


def _any(name: str, content: dict[str, object]) -> Any:
    return Any(f"{_TYPES}.{name}+json", msgspec.json.encode(content))
