"""`POST /build`: the classic builder of the API, with a context as the body and lines of text as the answer; and with
`version=2` builds by BuildKit, whose answer carries its own messages."""

import base64
import binascii
import json

from husk.aio.once import load
from husk.api.build_request import outputs_of, record_of, request_of
from husk.api.calls.call import Call
from husk.api.calls.router import Route, change, stream
from husk.api.http.response import Answer
from husk.api.streams.feed import stream_progress
from husk.builder.classic.build import Report
from husk.builder.sources.images import credentials_in
from husk.engine.model.image import Progress
from husk.errors import InvalidParameter
from husk.registry.auth import Credentials, credentials_from

CONFIG_HEADER = "x-registry-config"
_CHUNK = 1 << 20


async def build(call: Call) -> Answer:
    outputs = outputs_of(call)
    match call.text("version"):
        case "2":
            await load("husk.api.posted_build")
            # A door: it needs all of BuildKit's protocol, of which the classic builder needs little.
            from husk.api.posted_build import build_by_buildkit

            return await build_by_buildkit(call, outputs)
        case "" | "1":
            pass
        case other:
            raise InvalidParameter(f'invalid version "{other}"')
    if outputs:
        raise InvalidParameter("outputs of a build need version=2 of it: the classic builder makes images")
    if call.flag("squash") and not call.engine.config.experimental:
        raise InvalidParameter("squash is only supported with experimental mode")
    request = request_of(call)
    credentials = credentials_in(_credentials(call))

    async def work(report: Report) -> None:
        builder = await call.engine.builder.get()
        remote = call.text("remote")
        history = await call.common.history()
        async with history.noted(record_of(request, remote)) as log:
            if remote:
                image = await builder.build_remote(request, remote, credentials, report, log)
            else:
                image = await builder.build_upload(request, call.upload(_CHUNK), credentials, report, log)
        if request.quiet:
            report(Progress(stream=f"{image.id}\n"))
            return
        report(Progress(stream=f"Successfully built {image.id.removeprefix('sha256:')[:12]}\n"))
        for name in request.names:
            report(Progress(stream=f"Successfully tagged {name.familiar}\n"))

    return await stream_progress(call, work, "build")


async def cancel(call: Call) -> Answer:
    """End a build of `version=2`, by the id that its client has given it."""
    if not (id := call.text("id")):
        raise InvalidParameter("build ID not provided")
    if call.common.buildkit is not None:
        call.common.buildkit.posted.cancel(id)
    return call.empty(200)


def _credentials(call: Call) -> dict[str, Credentials]:
    header = call.request.header(CONFIG_HEADER)
    if not header.strip():
        return {}
    compact = header.strip().rstrip("=").replace("-", "+").replace("_", "/")
    try:
        document = json.loads(base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidParameter(f"invalid X-Registry-Config header: {error}") from error
    if not isinstance(document, dict):
        return {}
    return {str(host): credentials_from(entry, "X-Registry-Config header") for host, entry in document.items()}


ROUTES: tuple[Route, ...] = (
    stream("POST", "/build", build),
    change("POST", "/build/cancel", cancel),
)
