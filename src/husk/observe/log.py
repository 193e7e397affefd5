"""The daemon's log: dockerd's two forms on standard error, `text` (key=value) and `json`.

What is written while a request of the API is served, in whichever task or thread, has the request's id. Names and
messages of images and clients are in it: nothing of them is obeyed by a terminal, or begins a line.
"""

import json
import logging
import sys
from datetime import UTC, datetime

from husk.text.terminals import indented, json_text
from husk.watch import request_id

_NAMES = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/@^+")


class TextFormatter(logging.Formatter):
    """`time="..." level=info msg="..."`; a traceback follows on lines of its own, as people read it."""

    def format(self, record: logging.LogRecord) -> str:
        line = f'time="{_time(record)}" level={_level(record)} msg={_quoted(record.getMessage())} module={record.name}'
        if id := request_id():
            line = f"{line} request_id={id}"
        if not (trace := _trace(self, record)):
            return line

        return f"{line}\n{indented(trace)}"


class JSONFormatter(logging.Formatter):
    """One JSON object per line, the traceback inside it: what log collectors take."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "level": _level(record),
            "module": record.name,
            "msg": record.getMessage(),
            "time": _time(record),
        }
        if id := request_id():
            fields["request_id"] = id
        if trace := _trace(self, record):
            fields["traceback"] = trace
        return _json(fields)


def set_up(level: str, form: str) -> None:
    """Send everything that the program logs to standard error; replaces what was set up before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], force=True)
    set_level(level)


def set_level(level: str) -> None:
    logging.getLogger().setLevel(_LEVELS[level])
    # Asked for debug, libraries say more than anybody wants about themselves.
    for name in ("asyncio", "aiohttp", "hpack"):
        logging.getLogger(name).setLevel(max(_LEVELS[level], logging.INFO))


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _level(record: logging.LogRecord) -> str:
    return _NAMES.get(record.levelno, "fatal" if record.levelno >= logging.CRITICAL else "info")


def _quoted(text: str) -> str:
    return text if text and _BARE.issuperset(text) else _json(text)


def _json(value: object) -> str:
    """Loaded with the first line that needs it: a start that goes well has none."""

    return json_text(json.dumps(value, ensure_ascii=False))


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return formatter.formatException(record.exc_info) if record.exc_info else ""
