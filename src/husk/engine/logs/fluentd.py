"""Lines as events of fluentd, in its forward protocol: one packet of MessagePack for many lines. Pure."""

import base64
import os
import struct
from collections.abc import Mapping, Sequence

import msgspec

from husk.engine.logs import attributes
from husk.engine.logs.messages import LogMessage, LogReceiver, host_and_port
from husk.engine.logs.options import flag
from husk.engine.model.container import Container
from husk.errors import InvalidParameter
from husk.runtime.logs.transport import ReceiverAddress, Tls

_PORT = 24224
_FLAGS = ("fluentd-async", "fluentd-async-connect", "fluentd-request-ack", "fluentd-sub-second-precision")


class _Options(msgspec.Struct):
    chunk: str = ""


def receiver(container: Container, options: Mapping[str, str]) -> LogReceiver:
    chosen = {name: flag(options.get(name, "false")) for name in _FLAGS}
    tag = attributes.tag(container, options.get("tag") or attributes.DEFAULT_TAG)
    common = {
        "container_id": container.id,
        "container_name": "/" + container.name,
        **attributes.extra(container),
    }
    exact, acknowledged = chosen["fluentd-sub-second-precision"], chosen["fluentd-request-ack"]

    def encode(messages: Sequence[LogMessage]) -> list[bytes]:
        events = [[_time(message.time_ns, exact), _record(message, common)] for message in messages]
        if not acknowledged:
            return [msgspec.msgpack.encode([tag, events])]
        chunk = base64.b64encode(os.urandom(16)).decode()
        return [msgspec.msgpack.encode([tag, events, {"chunk": chunk}])]

    return LogReceiver(
        _address(options.get("fluentd-address", "")),
        encode,
        acknowledges=expected_answer if acknowledged else None,
        waits=not (chosen["fluentd-async"] or chosen["fluentd-async-connect"]),
    )


def expected_answer(packet: bytes) -> bytes:
    _, _, asked = msgspec.msgpack.decode(packet, type=tuple[str, list[msgspec.Raw], _Options])
    return msgspec.msgpack.encode({"ack": asked.chunk})


def _time(time_ns: int, exact: bool) -> int | msgspec.msgpack.Ext:
    seconds, nanoseconds = divmod(time_ns, 10**9)
    return msgspec.msgpack.Ext(0, struct.pack(">II", seconds, nanoseconds)) if exact else seconds


def _record(message: LogMessage, common: Mapping[str, str]) -> dict[str, str]:
    own = {"source": "stdout" if message.stream == 1 else "stderr", "log": message.text.decode(errors="replace")}
    return {**common, **own, **({"partial_message": "true"} if message.partial else {})}


def _address(text: str) -> ReceiverAddress:
    protocol, separator, rest = text.partition("://")
    if not separator:
        protocol, rest = "tcp", text
    if protocol == "unix" and rest:
        return ReceiverAddress("unix", rest)
    if protocol not in ("tcp", "tls"):
        raise InvalidParameter(f"invalid fluentd-address {text}: address {text}: too many colons in address")
    host, port = host_and_port(rest or "127.0.0.1", _PORT)
    return ReceiverAddress("tcp", host, port, Tls() if protocol == "tls" else None)
