"""Lines as entries of systemd's journal, in its own protocol: fields in a datagram. Pure."""

import re
import struct
from collections.abc import Mapping, Sequence

from husk.engine.logs import attributes
from husk.engine.logs.messages import JOURNAL, LogMessage, LogReceiver
from husk.engine.model.clock import rfc3339
from husk.engine.model.container import Container
from husk.runtime.logs.transport import ReceiverAddress


def receiver(container: Container, options: Mapping[str, str]) -> LogReceiver:
    tag = attributes.tag(container, options.get("tag") or attributes.DEFAULT_TAG)
    common = {
        "CONTAINER_ID": container.id[:12],
        "CONTAINER_ID_FULL": container.id,
        "CONTAINER_NAME": container.name,
        "CONTAINER_TAG": tag,
        "IMAGE_NAME": container.config.image,
        "SYSLOG_IDENTIFIER": tag,
        **{_field(name): value for name, value in attributes.extra(container).items()},
    }

    def encode(messages: Sequence[LogMessage]) -> list[bytes]:
        return [entry(message, common) for message in messages]

    return LogReceiver(ReceiverAddress("unixgram", JOURNAL), encode)


def entry(message: LogMessage, common: Mapping[str, str]) -> bytes:
    fields = {
        **common,
        "PRIORITY": str(message.severity),
        "SYSLOG_TIMESTAMP": rfc3339(message.time_ns),
        **({"CONTAINER_PARTIAL_MESSAGE": "true"} if message.partial else {}),
    }
    parts = [_pair(name, value.encode()) for name, value in fields.items()]
    return b"".join([*parts, _pair("MESSAGE", message.text)])


def _pair(name: str, value: bytes) -> bytes:
    if b"\n" not in value and name != "MESSAGE":
        return name.encode() + b"=" + value + b"\n"
    return name.encode() + b"\n" + struct.pack("<Q", len(value)) + value + b"\n"


def _field(name: str) -> str:
    """The journal takes upper case letters, digits and underscores, and no field of others may begin with one."""
    return re.sub(r"[^A-Z0-9_]", "_", name.upper()).lstrip("_0123456789")[:64] or "FIELD"
