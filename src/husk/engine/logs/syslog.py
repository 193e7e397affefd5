"""Lines as syslog messages: RFC 3164, RFC 5424, or what local daemons take. Pure, but that it looks for the socket of
this host's own daemon."""

import os
import time
from collections.abc import Mapping, Sequence

from husk.engine.logs import attributes
from husk.engine.logs.messages import LogMessage, LogReceiver, host_and_port, hostname
from husk.engine.logs.options import flag
from husk.engine.model.clock import rfc3339
from husk.engine.model.container import Container
from husk.errors import InvalidParameter
from husk.runtime.logs.transport import ReceiverAddress, Tls, is_there
from husk.text.digits import read_number

_FACILITIES = (
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    "", "", "", "", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
)  # fmt: skip
_FORMATS = ("", "rfc3164", "rfc5424", "rfc5424micro")
_LOCAL = ("/dev/log", "/var/run/syslog", "/var/run/log")
_PORT = 514


def receiver(container: Container, options: Mapping[str, str]) -> LogReceiver:
    form = options.get("syslog-format", "")
    if form not in _FORMATS:
        raise InvalidParameter("Invalid syslog format")
    facility = _facility(options.get("syslog-facility", ""))
    tag = attributes.tag(container, options.get("tag") or attributes.DEFAULT_TAG)
    address = _address(options)
    counted = form.startswith("rfc5424") and address.tls is not None

    def encode(messages: Sequence[LogMessage]) -> list[bytes]:
        packets = [line(message, form, facility, tag, hostname()) for message in messages]
        return [b"%d %s" % (len(packet), packet) for packet in packets] if counted else packets

    # As dockerd, which looks for one that a client names, and not for those that hosts have.
    here = address.host if address.protocol.startswith("unix") and options.get("syslog-address") else ""
    return LogReceiver(address, encode, required=here)


def line(message: LogMessage, form: str, facility: int, tag: str, host: str) -> bytes:
    priority = facility * 8 + message.severity
    seconds, nanoseconds = divmod(message.time_ns, 10**9)
    if form in ("", "rfc3164"):
        moment = time.strftime("%b %e %H:%M:%S", time.localtime(seconds))
        name = f"{host} " if form else ""
        head = f"<{priority}>{moment} {name}{tag}[{os.getpid()}]: "
    else:
        fraction = f".{nanoseconds // 1000:06}Z" if form == "rfc5424micro" else "Z"
        moment = rfc3339(seconds * 10**9)[:19] + fraction
        head = f"<{priority}>1 {moment} {host} {tag} {os.getpid()} {tag} - "
    return head.encode() + message.text + b"\n"


def _facility(text: str) -> int:
    if not text:
        return _FACILITIES.index("daemon")
    if text in _FACILITIES:
        return _FACILITIES.index(text)
    if (number := read_number(text, most=len(_FACILITIES) - 1)) is not None:
        return number
    raise InvalidParameter("invalid syslog facility")


def _address(options: Mapping[str, str]) -> ReceiverAddress:
    text = options.get("syslog-address", "")
    if not text:
        local = next((path for path in _LOCAL if is_there(path)), _LOCAL[0])
        return ReceiverAddress("unixgram", local)
    protocol, separator, rest = text.partition("://")
    if not separator or protocol not in ("udp", "tcp", "tcp+tls", "unix", "unixgram"):
        raise InvalidParameter(f"syslog-address should be in form proto://address, got {text}")
    if protocol.startswith("unix"):
        return ReceiverAddress(protocol, rest)
    host, port = host_and_port(rest, _PORT)
    tls = None
    if protocol == "tcp+tls":
        tls = Tls(
            ca=options.get("syslog-tls-ca-cert", ""),
            certificate=options.get("syslog-tls-cert", ""),
            key=options.get("syslog-tls-key", ""),
            verify=not flag(options.get("syslog-tls-skip-verify", "false")),
        )
    return ReceiverAddress(protocol.removesuffix("+tls"), host, port, tls)
