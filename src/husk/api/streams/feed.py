"""Progress of work that takes a while, as its client follows it: records as JSON lines, the failure as the last one.

Work in progress on the wire: JSON lines with the bar that clients print as it is.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine

from husk.aio.tasks import Tasks
from husk.api.calls.call import JSON, Call
from husk.api.http.response import Answer
from husk.engine.model.image import BuiltImage, Progress, Traced
from husk.errors import CommandFailed, HuskError
from husk.text.gojson import encode

log = logging.getLogger(__name__)

# A terminal shows no more; a record per chunk of every layer would be megabytes of JSON.
PROGRESS_INTERVAL = 0.1
# So many records are sent at once, however little time has gone by: thousands that wait take megabytes.
_MUCH = 1000
# So many records are written before others have a turn: a build of thousands of steps tells them all in a moment.
_AT_ONCE = 200

Work = Callable[[Callable[[Progress], None]], Coroutine[object, object, None]]
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")
_WIDTH = 50
_SHORT_ID = 12


async def stream_progress(
    call: Call, work: Work, name: str, *, to_its_end: bool = False, errors_in_stream: bool = False
) -> Answer:
    """Run `work` and tell its progress; the answer begins with the first record, so that early errors get a status,
    unless dockerd tells all `errors_in_stream`.

    The work ends with its client, unless it is to go on `to_its_end`: a load whose client does not wait for the answer
    is still a load.
    """
    feed = ProgressFeed()
    tasks = Tasks()
    owner = call.common.changes if to_its_end else tasks
    working = owner.spawn(_feed(feed, work(feed.add)), name, awaited=True)
    try:
        records = await feed.next()
        if not records and not errors_in_stream:
            await working  # nothing to show: an error gets its status here
            return call.empty(200)
        response = call.stream(JSON)
        while records:
            await response.write(records)
            await feed.gather()
            records = await feed.next()
        try:
            await working
        except HuskError as error:
            code = error.code if isinstance(error, CommandFailed) else 0
            call.request.fault = error.message
            await response.write(error_line(error.message, code))
        except Exception as error:
            log.exception("%s failed", name)
            await response.write(error_line(f"internal error: {type(error).__name__}: {error}"))
        await response.write_eof()
        return response
    except (asyncio.CancelledError, ConnectionError):
        feed.mute()
        working.add_done_callback(_tell_nobody)
        raise
    finally:
        await tasks.cancel_all()


def _tell_nobody(working: "asyncio.Task[None]") -> None:
    if not working.cancelled() and (error := working.exception()) is not None:
        reason = error.message if isinstance(error, HuskError) else repr(error)
        log.warning("%s failed when its client had gone: %s", working.get_name(), reason)


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
        self._much = asyncio.Event()
        self._closed = False
        self._muted = False

    def mute(self) -> None:
        """Nobody takes the records any more."""
        self._muted = True
        self._waiting.clear()

    def add(self, progress: Progress) -> None:
        if self._muted:
            return
        # Statements ("Digest: ...") have no number to update; each counts.
        key: object = (progress.id, progress.status) if progress.total or progress.current else object()
        self._waiting[key] = progress
        self._changed.set()
        if len(self._waiting) >= _MUCH:
            self._much.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()
        self._much.set()

    async def gather(self) -> None:
        """Wait for a moment, so that what comes meanwhile is sent together; not when it is much, or the last."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PROGRESS_INTERVAL):
                await self._much.wait()

    async def next(self) -> bytes:
        """All that waits, as JSON lines; b"" when there is no more to come."""
        while not self._waiting:
            if self._closed:
                return b""
            self._changed.clear()
            await self._changed.wait()
        records, self._waiting = self._waiting, {}
        if not self._closed:
            self._much.clear()
        lines = []
        for number, record in enumerate(records.values(), 1):
            lines.append(progress_line(record))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return b"".join(lines)


def human_size(count: float) -> str:
    """Four significant digits and a decimal unit: `1.234MB`."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{count:.4g}{_UNITS[unit]}"


def progress_bar(current: int, total: int) -> str:
    """`[=====>     ]  1.2MB/3MB`; without a total only how much there is so far."""
    if current <= 0 and total <= 0:
        return ""
    if total <= 0:
        return f"{human_size(current):>8}"
    filled = min(_WIDTH, current * 100 // total // 2)
    numbers = f"{human_size(current):>8}"
    if current <= total:
        numbers += f"/{human_size(total)}"
    return f"[{'=' * filled}>{' ' * (_WIDTH - filled)}] {numbers}"


def progress_line(progress: Progress) -> bytes:
    """One record of work on an image. Layers (a short id) always have `progressDetail`, statements never."""
    if progress.stream:
        return encode({"stream": progress.stream}) + b"\r\n"
    if isinstance(progress.aux, BuiltImage | Traced):
        named = {"id": progress.id} if progress.id else {}
        value = progress.aux.message if isinstance(progress.aux, Traced) else progress.aux
        return encode({**named, "aux": value}) + b"\r\n"
    if progress.aux is not None:
        return encode({"progressDetail": {}, "aux": progress.aux}) + b"\r\n"
    record: dict[str, object] = {"status": progress.status}
    if progress.current or progress.total or _is_layer(progress.id):
        detail: dict[str, int] = {}
        if progress.current:
            detail["current"] = progress.current
        if progress.total:
            detail["total"] = progress.total
        record["progressDetail"] = detail
        if bar := progress_bar(progress.current, progress.total):
            record["progress"] = bar
    if progress.id:
        record["id"] = progress.id
    return encode(record) + b"\r\n"


def error_line(message: str, code: int = 0) -> bytes:
    """Say in a stream that has begun that the work failed; with the exit code of a command, if one has."""
    detail = {"code": code, "message": message} if code else {"message": message}
    return encode({"errorDetail": detail, "error": message}) + b"\r\n"


def _is_layer(text: str) -> bool:
    return len(text) == _SHORT_ID and not text.strip("0123456789abcdef")
