"""Lines as GELF messages: JSON, packed and cut into pieces for UDP, ended by a zero for TCP. Pure."""

import gzip
import os
import zlib
from collections.abc import Mapping, Sequence

import msgspec

from husk.engine.logs import attributes
from husk.engine.logs.messages import LogMessage, LogReceiver, host_and_port, hostname
from husk.engine.model.clock import parse_rfc3339
from husk.engine.model.container import Container
from husk.errors import InvalidParameter
from husk.runtime.logs.transport import ReceiverAddress

_MAGIC = b"\x1e\x0f"
_PIECE = 1420 - 12
_MOST_PIECES = 128


def receiver(container: Container, options: Mapping[str, str]) -> LogReceiver:
    address = _address(options.get("gelf-address", ""))
    kind = _choice(options, "gelf-compression-type", ("gzip", "zlib", "none"), "gzip")
    level = int(_choice(options, "gelf-compression-level", tuple(map(str, range(-1, 10))), "1"))
    common = {
        "version": "1.1",
        "host": hostname(),
        "_command": " ".join([container.path, *container.args]),
        "_container_id": container.id,
        "_container_name": container.name,
        "_created": parse_rfc3339(container.created) / 1e9,
        "_image_id": container.image_id,
        "_image_name": container.config.image,
        "_tag": attributes.tag(container, options.get("tag") or attributes.DEFAULT_TAG),
        **{f"_{name}": value for name, value in attributes.extra(container).items()},
    }

    def encode(messages: Sequence[LogMessage]) -> list[bytes]:
        documents = [document(message, common) for message in messages]
        if address.protocol == "tcp":
            return [text + b"\0" for text in documents]
        return [piece for text in documents for piece in pieces(packed(text, kind, level), os.urandom(8))]

    return LogReceiver(address, encode)


def document(message: LogMessage, common: Mapping[str, object]) -> bytes:
    text = message.text.decode(errors="replace")
    own = {"short_message": text, "timestamp": message.time_ns // 10**6 / 1000, "level": message.severity}
    return msgspec.json.encode({**common, **own})


def packed(data: bytes, kind: str, level: int) -> bytes:
    if kind == "gzip":
        return gzip.compress(data, level if level >= 0 else 6, mtime=0)
    return zlib.compress(data, level) if kind == "zlib" else data


def pieces(data: bytes, name: bytes) -> list[bytes]:
    """The datagrams of a message; one that needs too many is cut, as GELF knows no more."""
    if len(data) <= _PIECE + 12:
        return [data]
    parts = [data[begin : begin + _PIECE] for begin in range(0, len(data), _PIECE)][:_MOST_PIECES]
    return [_MAGIC + name + bytes((number, len(parts))) + part for number, part in enumerate(parts)]


def _address(text: str) -> ReceiverAddress:
    if not text:
        raise InvalidParameter("gelf-address is a required parameter")
    protocol, separator, rest = text.partition("://")
    if not separator or protocol not in ("udp", "tcp"):
        raise InvalidParameter(f"gelf-address should be in form proto://address, got {text}")
    host, port = host_and_port(rest, 0)
    if not port:
        raise InvalidParameter("gelf: please provide gelf-address as proto://host:port")
    return ReceiverAddress(protocol, host, port)


def _choice(options: Mapping[str, str], name: str, choices: Sequence[str], default: str) -> str:
    value = options.get(name, default)
    if value not in choices:
        raise InvalidParameter(f'unknown value "{value}" for log opt "{name}" for gelf log driver')
    return value
