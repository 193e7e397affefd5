"""Work in progress on the wire: JSON lines with the bar that clients print as it is."""

from husk.engine.model.image import BuiltImage, Progress, Traced
from husk.text.gojson import encode

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")
_WIDTH = 50
_SHORT_ID = 12


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
