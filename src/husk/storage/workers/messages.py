"""The messages that bring jobs to workers, and answers back.

A job goes to its worker as one message of a socket; answers come back on a pipe, one after the other. Both are JSON,
each on a line of its own, and decoded into the types of `jobs` and `answers`: a field that is missing, unknown or of
another type is refused. JSON and not msgpack: the name of a file need not be UTF-8, and what Python makes of such a
name (a lone surrogate) passes as JSON's escape.
"""

import importlib
import json

import msgspec

from husk.storage.workers.answers import Answer
from husk.storage.workers.jobs import WorkerJob

# What fits into one message of a socket, whose buffer holds 208 KiB where nobody has changed that.
LARGEST_JOB = 192 << 10
_LONGEST_MESSAGE = 8192


class _JobMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job with its type, which a module defines: wings have jobs of their own."""

    module: str
    name: str
    job: dict[str, object]


def encode(message: WorkerJob | Answer) -> bytes:
    told = msgspec.to_builtins(message)
    if isinstance(message, WorkerJob):
        told = {"module": type(message).__module__, "name": type(message).__name__, "job": told}
    return json.dumps(told).encode() + b"\n"


def decode_job(line: bytes) -> WorkerJob:
    """Decode a job as the type that it names. ValidationError for what is no job."""
    told = msgspec.convert(json.loads(line), type=_JobMessage)
    kind = getattr(importlib.import_module(told.module), told.name, None)
    if not (isinstance(kind, type) and issubclass(kind, WorkerJob)):
        raise msgspec.ValidationError(f"{told.module}.{told.name} is no job")
    return msgspec.convert(told.job, type=kind)


def decode_answer(line: bytes) -> Answer:
    answer: Answer = msgspec.convert(json.loads(line), type=Answer)
    return answer


def printable(text: str) -> str:
    """One line, not too long, that every client can be shown, whatever names of files are in it."""
    return text[:_LONGEST_MESSAGE].replace("\n", " ").encode("utf-8", "backslashreplace").decode()
