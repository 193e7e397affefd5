"""Builds by BuildKit that come with `POST /build?version=2`, as docker's clients had them built before they spoke its
protocol themselves: the request says what is to be done, a session beside it gives files and secrets, and the answer
carries the messages of Control.Status.

A context is a directory of the session's (`remote=client-session`), the body of the request, or the body of another
one (`buildid=upload-request:<id>`) for which the build waits (`remote=upload-request`).
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

from msgspec import Struct

from husk.aio.tasks import Tasks
from husk.builder.jobs.results import DOCKERFILE
from husk.builder.protocol import progress
from husk.builder.protocol.control import Control
from husk.builder.protocol.messages import control
from husk.builder.service import Builder
from husk.engine.model.image import BuiltImage, Progress, Traced
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound
from husk.rpc.grpc.status import GrpcError

TRACE, IMAGE_ID = "moby.buildkit.trace", "moby.image.id"
OF_SESSION, OF_UPLOAD = "client-session", "upload-request"
# The exporters that make an image of ours.
IMAGES = ("moby", "image")
_DIGEST = "containerimage.digest"
# How long a build waits for its context, and a context for its build.
_PATIENCE = 5.0

Report = Callable[[Progress], None]


class PostedBuild(Struct, frozen=True, kw_only=True):
    """A build as a request asks for it. `id` is the name by which its client may cancel it."""

    id: str = ""
    session: str = ""
    remote: str = ""
    attributes: dict[str, str]
    exporters: Sequence[control.Exporter] = ()
    inline_cache: bool = False
    cache_from: Sequence[str] = ()
    entitlements: Sequence[str] = ()
    quiet: bool = False


class PostedBuilds:
    def __init__(self, builder: Builder, service: Control, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._builder = builder
        self._control = service
        self._uploads: dict[str, _Upload] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def build(self, wanted: PostedBuild, body: AsyncIterator[bytes], report: Report) -> None:
        tasks = Tasks()
        work = tasks.spawn(self._build(wanted, body, report), "build", awaited=True)
        if wanted.id:
            self._running[wanted.id] = work
        try:
            await asyncio.wait({work})
            if work.cancelled():
                raise InvalidParameter("the build was cancelled")
            work.result()
        finally:
            if self._running.get(wanted.id) is work:
                del self._running[wanted.id]
            await tasks.cancel_all()

    def cancel(self, id: str) -> None:
        """End a build of this name, if there is one."""
        if work := self._running.get(id):
            work.cancel()

    async def _build(self, wanted: PostedBuild, body: AsyncIterator[bytes], report: Report) -> None:
        async with AsyncExitStack() as stack:
            attributes = dict(wanted.attributes)
            if wanted.remote == OF_UPLOAD:
                body = await stack.enter_async_context(self._taken(wanted.id))
            if wanted.remote in ("", OF_UPLOAD):
                attributes["context"] = stack.enter_context(self._builder.bodies.offer(body))
            elif wanted.remote != OF_SESSION:
                attributes["context"] = wanted.remote
            told = await self._solve(_request(wanted, attributes), (lambda _: None) if wanted.quiet else report)
        if (image := told.get(_DIGEST)) and any(one.type in IMAGES for one in wanted.exporters):
            if wanted.quiet:
                report(Progress(stream=f"{image}\n"))
            else:
                report(Progress(id=IMAGE_ID, aux=BuiltImage(id=image)))

    async def _solve(self, request: control.SolveRequest, report: Report) -> dict[str, str]:
        tasks = Tasks()
        begun = asyncio.Event()
        telling = tasks.spawn(self._tell(request.ref, report, begun), "progress of a build", awaited=True)
        solving = tasks.spawn(self._control.solve(request, {}), "build", awaited=True)
        try:
            await asyncio.wait({solving})
            if begun.is_set():
                await telling  # the job has ended, and so does what it tells
            return solving.result().exporter_response
        except GrpcError as error:
            if isinstance(error.__cause__, HuskError):
                raise error.__cause__ from None
            raise InvalidParameter(error.message) from error
        finally:
            await tasks.cancel_all()

    async def _tell(self, ref: str, report: Report, begun: asyncio.Event) -> None:
        job = await self._builder.jobs.get(ref)
        begun.set()
        async with aclosing(job.log.follow()) as follow:
            async for told in follow:
                for response in progress.responses(told):
                    report(Progress(id=TRACE, aux=Traced(message=response.encode())))

    # --- contexts with requests of their own -------------------------------------------------------------------------

    async def upload(self, id: str, body: AsyncIterator[bytes]) -> None:
        """Give a build its context; ends when that was read."""
        upload = self._upload(id)
        if upload.body.done():
            raise Conflict(f"the build {id} has got its context")
        upload.body.set_result(body)
        try:
            async with asyncio.timeout(self._patience):
                await upload.taken.wait()
        except TimeoutError:
            self._uploads.pop(id, None)
            raise NotFound(f"no build {id} waits for a context") from None
        await upload.ended.wait()

    @asynccontextmanager
    async def _taken(self, id: str) -> AsyncIterator[AsyncIterator[bytes]]:
        upload = self._upload(id)
        try:
            try:
                async with asyncio.timeout(self._patience):
                    body = await upload.body
            except TimeoutError:
                raise InvalidParameter(f"no context has come for the build {id}") from None
            upload.taken.set()
            yield body
        finally:
            upload.ended.set()
            self._uploads.pop(id, None)

    def _upload(self, id: str) -> "_Upload":
        return self._uploads.setdefault(id, _Upload())


class _Upload:
    def __init__(self) -> None:
        self.body: asyncio.Future[AsyncIterator[bytes]] = asyncio.get_running_loop().create_future()
        self.taken = asyncio.Event()
        self.ended = asyncio.Event()


def _request(wanted: PostedBuild, attributes: dict[str, str]) -> control.SolveRequest:
    cache = control.CacheOptions(
        exports=[control.CacheOptionsEntry("inline")] if wanted.inline_cache else [],
        imports=[control.CacheOptionsEntry("registry", {"ref": name}) for name in wanted.cache_from],
    )
    return control.SolveRequest(
        ref=secrets.token_hex(13)[:25],
        session=wanted.session,
        frontend=DOCKERFILE,
        frontend_attrs=attributes,
        exporters=list(wanted.exporters),
        cache=cache,
        entitlements=list(wanted.entitlements),
    )
