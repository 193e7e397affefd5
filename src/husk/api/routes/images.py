"""Images: pull, list, look at, name, remove, and make from a container."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine

from aiohttp import web

from husk.api.call import Call
from husk.api.progress import error_line, progress_line
from husk.api.router import change, read, stream
from husk.api.types.images import AuthRequest, AuthResponse, CommitResponse, ImageRemoval
from husk.api.views import images as views
from husk.engine.containers.model import Config
from husk.engine.filters import Filters
from husk.engine.images.model import CommitOptions, Progress
from husk.errors import HuskError, InvalidParameter, NotImplementedYet
from husk.gojson import Reader
from husk.registry.auth import Credentials, parse_auth_header
from husk.tasks import Tasks

log = logging.getLogger(__name__)

FILTERS = ("before", "dangling", "label", "label!", "reference", "since", "until")
AUTH_HEADER = "X-Registry-Auth"
# A terminal shows no more; a record per chunk of every layer would be megabytes of JSON.
PROGRESS_INTERVAL = 0.1

_config = Reader(Config)
_credentials = Reader(AuthRequest)


async def listing(call: Call) -> web.StreamResponse:
    images = call.engine.images
    filters = Filters.parse(call.text("filters"), FILTERS)
    patterns = filters.get("reference")
    shared = call.flag("shared-size")
    return call.json(
        [
            views.summary(
                image,
                images.tags(image, patterns),
                images.digests(image, patterns),
                call.version,
                shared_size=images.shared_size(image) if shared else -1,
            )
            for image in images.listing(call.flag("all"), filters)
        ]
    )


async def inspect(call: Call) -> web.StreamResponse:
    images = call.engine.images
    image = images.find(call.argument)
    return call.json(views.inspect(image, images.tags(image), images.digests(image), call.version))


async def create(call: Call) -> web.StreamResponse:
    """Pull an image; the answer begins with the first record of progress, so that early errors get a status."""
    if not (name := call.text("fromImage")):
        if call.text("fromSrc"):
            raise NotImplementedYet("importing an image from a file or address is not implemented by Husk yet")
        raise InvalidParameter("fromImage must name the image to pull")
    auth: Credentials | None = None
    with contextlib.suppress(InvalidParameter):  # dockerd pulls without credentials when it cannot read them
        auth = parse_auth_header(call.request.headers.get(AUTH_HEADER, ""))
    feed = ProgressFeed()
    tasks = Tasks()
    pulling = tasks.spawn(
        _feed(feed, call.engine.images.pull(name, call.text("tag"), call.text("platform"), auth, feed.add)),
        f"pull {name}",
        awaited=True,
    )
    try:
        records = await feed.next()
        if not records:
            await pulling  # nothing to show: an error gets its status here
            return call.empty(200)
        response = await call.stream("application/json")
        while records:
            await response.write(records)
            await asyncio.wait({pulling}, timeout=PROGRESS_INTERVAL)
            records = await feed.next()
        try:
            await pulling
        except HuskError as error:
            await response.write(error_line(error.message))
        except Exception as error:
            log.exception("pull of %s failed", name)
            await response.write(error_line(f"internal error: {type(error).__name__}: {error}"))
        await response.write_eof()
        return response
    finally:
        await tasks.cancel_all()


async def _feed(feed: "ProgressFeed", work: Coroutine[object, object, None]) -> None:
    try:
        await work
    finally:
        feed.close()


class ProgressFeed:
    """Records waiting to be sent. Of a layer in one phase only the newest matters."""

    def __init__(self) -> None:
        self._waiting: dict[object, Progress] = {}
        self._changed = asyncio.Event()
        self._closed = False

    def add(self, progress: Progress) -> None:
        # Statements ("Digest: ...") have no number to update; each counts.
        key: object = (progress.id, progress.status) if progress.total or progress.current else object()
        self._waiting[key] = progress
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    async def next(self) -> bytes:
        """All that waits, as JSON lines; b"" when there is no more to come."""
        while not self._waiting:
            if self._closed:
                return b""
            self._changed.clear()
            await self._changed.wait()
        records, self._waiting = self._waiting, {}
        return b"".join(progress_line(record) for record in records.values())


async def tag(call: Call) -> web.StreamResponse:
    await call.engine.images.tag(call.argument, call.text("repo"), call.text("tag"))
    return call.empty(201)


async def remove(call: Call) -> web.StreamResponse:
    removals = await call.engine.images.remove(call.argument, force=call.flag("force"), noprune=call.flag("noprune"))
    return call.json(
        [
            ImageRemoval(untagged=removal.untagged) if removal.untagged else ImageRemoval(deleted=removal.deleted)
            for removal in removals
        ]
    )


async def commit(call: Call) -> web.StreamResponse:
    document = await call.document()
    config = _config.read(document) if document is not None and _config.mentioned(document) else None
    image_id = await call.engine.commit(
        call.text("container"),
        CommitOptions(
            repo=call.text("repo"),
            tag=call.text("tag"),
            author=call.text("author"),
            comment=call.text("comment"),
            changes=call.query.getall("changes", []),
            pause=call.flag("pause") if call.text("pause") else True,
            config=config,
        ),
    )
    return call.json(CommitResponse(id=image_id), status=201)


async def login(call: Call) -> web.StreamResponse:
    request = await call.body(_credentials)
    token = await call.engine.images.login(
        Credentials(
            username=request.username,
            password=request.password,
            identity_token=request.identitytoken,
            registry_token=request.registrytoken,
            server_address=request.serveraddress,
        )
    )
    return call.json(AuthResponse(identity_token=token, status="Login Succeeded"))


ROUTES = (
    read("/images/json", listing),
    read("/images/{name}/json", inspect),
    stream("POST", "/images/create", create),
    change("POST", "/images/{name}/tag", tag),
    change("DELETE", "/images/{name}", remove),
    change("POST", "/commit", commit),
    read("/auth", login, method="POST"),
)
