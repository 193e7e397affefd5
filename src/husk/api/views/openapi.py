"""Husk's own operations, those that Docker's API does not have, as an OpenAPI document.

`OPERATIONS` describes each in words; the schemas of what they take and answer are made from the types that the routes
read and write. A unit test compares the table with the routes.
"""

from typing import Any

import msgspec
from msgspec import Struct

from husk.api.types.containers import CreateExtras, RunExtras, WaitResponse
from husk.api.versioning import CURRENT
from husk.engine.model.container_config import ContainerConfig

OPENAPI = "3.1.0"
OCTETS = "application/octet-stream"
JSON = "application/json"
FRAMES = "application/vnd.docker.multiplexed-stream"
_REFERENCE = "#/components/schemas/{name}"


class ErrorMessage(Struct, kw_only=True):
    """The answer to a request that failed."""

    message: str


class OwnParameter(Struct, frozen=True):
    """A value beside the body of a request: in its `path`, its `query` or a `header`."""

    name: str
    place: str
    description: str
    required: bool = False


class OwnBody(Struct, frozen=True):
    """The body of a request or of an answer; its schema is all of the types together, or that of a few bytes."""

    media_type: str
    types: tuple[type, ...] = ()


class OwnAnswer(Struct, frozen=True):
    status: int
    description: str
    body: OwnBody | None = None
    headers: tuple[tuple[str, str], ...] = ()


class OwnOperation(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    name: str
    summary: str
    description: str
    parameters: tuple[OwnParameter, ...] = ()
    request: OwnBody | None = None
    answers: tuple[OwnAnswer, ...]


_PASSPHRASE = OwnParameter(
    "X-Husk-Passphrase",
    "header",
    "The passphrase that opens the file, in base64 with the URL's alphabet. A swarm with autolock has none: its unlock "
    "key opens the file, and stands here when it is restored.",
)
_FAULT = OwnAnswer(
    500, "The host or a tool on it failed; the message says which and how.", OwnBody(JSON, (ErrorMessage,))
)


def _refused(status: int, description: str) -> OwnAnswer:
    return OwnAnswer(status, description, OwnBody(JSON, (ErrorMessage,)))


OPERATIONS = (
    OwnOperation(
        method="POST",
        path="/containers/run",
        name="ContainerRun",
        summary="Run a container to its end, in one call",
        description="Makes a container, starts it, gives its process `Input`, and answers with what it writes. The "
        "container removes itself at its end, so `HostConfig.AutoRemove` must be true. The answer begins when the "
        "process runs. Its body is a row of frames: a byte for the stream (1 stdout, 2 stderr, 3 the end), three zero "
        "bytes, the length in four bytes with the highest first, and the data. The last frame is the one of stream 3: "
        "a JSON document with the exit status (`WaitResponse`). A client that leaves before it lets the container run.",
        parameters=(
            OwnParameter("name", "query", "The name of the container; one is invented where it is left out."),
            OwnParameter("platform", "query", "The platform of the image, as `linux/arm64`."),
        ),
        request=OwnBody(JSON, (ContainerConfig, CreateExtras, RunExtras)),
        answers=(
            OwnAnswer(
                200,
                "The process runs; its output follows.",
                OwnBody(FRAMES),
                (("X-Husk-Container", "The id of the container."),),
            ),
            _refused(400, "The document is malformed, or asks for something impossible."),
            _refused(404, "There is no such image, network or volume."),
            _refused(409, "The name is taken, or a port is."),
            _FAULT,
        ),
    ),
    OwnOperation(
        method="DELETE",
        path="/exec/{id}",
        name="ExecDelete",
        summary="End a process in a container",
        description="Kills the process of an exec, if it runs, and forgets the exec. Processes that it has started "
        "itself are left alone.",
        parameters=(OwnParameter("id", "path", "The id of the exec.", required=True),),
        answers=(
            OwnAnswer(204, "The process has ended, and the exec is forgotten."),
            _refused(404, "There is no such exec."),
            _FAULT,
        ),
    ),
    OwnOperation(
        method="POST",
        path="/swarm/backup",
        name="SwarmBackup",
        summary="Back up the swarm",
        description="Answers with one sealed file that has services, secrets, configs, networks, nodes, tokens and the "
        "key of the CA. The swarm goes on meanwhile.",
        parameters=(_PASSPHRASE,),
        answers=(
            OwnAnswer(200, "The file.", OwnBody(OCTETS)),
            _refused(400, "The passphrase is too short, or the swarm has autolock and takes none."),
            _refused(409, "Autolock, or the unlock key, was changed while the backup was made."),
            _refused(503, "This engine is no manager of a swarm, or its store cannot be reached."),
            _FAULT,
        ),
    ),
    OwnOperation(
        method="POST",
        path="/swarm/restore",
        name="SwarmRestore",
        summary="Go on with the swarm of a backup",
        description="Makes this engine, which is in no swarm, the only manager of the swarm of a backup. Workers come "
        "back to it with their running tasks.",
        parameters=(
            _PASSPHRASE,
            OwnParameter(
                "advertiseAddr",
                "query",
                "The address that other nodes reach this one at; left out, that of the manager that made the backup.",
            ),
            OwnParameter("listenAddr", "query", "The address and port that the cluster port listens on."),
            OwnParameter("dataPathAddr", "query", "The address that packets of overlay networks come in at."),
        ),
        request=OwnBody(OCTETS),
        answers=(
            OwnAnswer(200, "The id of this node.", OwnBody(JSON, (str,))),
            _refused(400, "The file is no backup, is damaged, or an address is not one of this host."),
            _refused(401, "The passphrase does not open the file."),
            _refused(503, "This engine is in a swarm already."),
            _FAULT,
        ),
    ),
    OwnOperation(
        method="GET",
        path="/openapi.json",
        name="OpenApi",
        summary="Describe Husk's own operations",
        description="Answers with this document.",
        answers=(OwnAnswer(200, "The document, in OpenAPI 3.1.", OwnBody(JSON, (dict,))),),
    ),
)


def document(version: str) -> dict[str, Any]:
    """Return the OpenAPI document of `OPERATIONS`, as a daemon of this version serves it."""
    bodies = [body for each in OPERATIONS for body in (each.request, *(answer.body for answer in each.answers)) if body]
    types = list(dict.fromkeys([WaitResponse, *(kind for body in bodies for kind in body.types)]))
    schemas, components = msgspec.json.schema_components(types, schema_hook=_any, ref_template=_REFERENCE)
    of_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, of_type)
    return {
        "openapi": OPENAPI,
        "info": {
            "title": "Husk",
            "version": version,
            "summary": "The operations that Husk has beside those of the Docker Engine API",
            "description": "All other operations are Docker's. Names of fields in JSON match in any case, and null "
            "means absent. Paths may begin with a version of the API, as in `/v1.51/exec/{id}`.",
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "Newest version"}, {"url": f"/v{CURRENT}"}],
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(each: OwnOperation, of_type: dict[type, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "operationId": each.name,
        "summary": each.summary,
        "description": each.description,
        "parameters": [_parameter(parameter) for parameter in each.parameters],
        "responses": {str(answer.status): _answer(answer, of_type) for answer in each.answers},
    }
    if each.request is not None:
        shown["requestBody"] = {"required": True, "content": _content(each.request, of_type)}
    return shown


def _parameter(parameter: OwnParameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.description,
        "schema": {"type": "string"},
    }


def _answer(answer: OwnAnswer, of_type: dict[type, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"description": answer.description}
    if answer.body is not None:
        shown["content"] = _content(answer.body, of_type)
    if answer.headers:
        shown["headers"] = {name: {"description": text, "schema": {"type": "string"}} for name, text in answer.headers}
    return shown


def _content(body: OwnBody, of_type: dict[type, Any]) -> dict[str, Any]:
    """Return the media types of a body. Bytes have no schema: OpenAPI 3.1 describes a file by its type alone."""
    schemas = [of_type[kind] for kind in body.types]
    if not schemas:
        return {body.media_type: {}}
    return {body.media_type: {"schema": schemas[0] if len(schemas) == 1 else {"allOf": schemas}}}


def _any(kind: type) -> dict[str, Any]:
    """Return the schema of a value that may be any; msgspec asks for types that it has none for."""
    if kind is object:
        return {"description": "Any value."}
    raise NotImplementedError(kind)
