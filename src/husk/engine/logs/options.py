"""The log driver and the options that a container asks for, checked in dockerd's words. Pure."""

import re
from collections.abc import Mapping

import msgspec

from husk.engine.logs import attributes
from husk.errors import InvalidParameter, NotImplementedYet
from husk.text.patterns import pattern

KEPT = ("json-file", "local")
FORWARDED = ("fluentd", "gelf", "journald", "syslog")
DRIVERS = (*KEPT, *FORWARDED, "none")
# Docker has them, Husk does not: the reader learns that it is no misspelling.
_DOCKERS_OWN = ("awslogs", "gcplogs", "logentries", "splunk", "etwlogs")

# Of all options together: they are looked at several times, here and at every start.
_MOST_OPTIONS = 1 << 16
# More would be more than a number of Python's may be.
_MOST_DIGITS = 100
_SIZE = pattern(r"(\d+(?:\.\d+)*) ?([kKmMgGtTpP])?[iI]?[bB]?", re.ASCII)
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")

_COMMON = frozenset({"mode", "max-buffer-size"})
_CACHE = frozenset({"cache-disabled", "cache-max-size", "cache-max-file", "cache-compress"})
_KNOWN: dict[str, frozenset[str]] = {
    "json-file": frozenset({"max-size", "max-file", "compress", *attributes.OPTIONS}),
    "local": frozenset({"max-size", "max-file", "compress"}),
    "syslog": frozenset(
        {
            "syslog-address",
            "syslog-facility",
            "syslog-format",
            "syslog-tls-ca-cert",
            "syslog-tls-cert",
            "syslog-tls-key",
            "syslog-tls-skip-verify",
            *attributes.OPTIONS,
        }
    ),
    "gelf": frozenset(
        {
            "gelf-address",
            "gelf-compression-type",
            "gelf-compression-level",
            "gelf-tcp-max-reconnect",
            "gelf-tcp-reconnect-delay",
            *attributes.OPTIONS,
        }
    ),
    "fluentd": frozenset(
        {
            "fluentd-address",
            "fluentd-async",
            "fluentd-async-connect",
            "fluentd-async-reconnect-interval",
            "fluentd-buffer-limit",
            "fluentd-max-retries",
            "fluentd-request-ack",
            "fluentd-retry-wait",
            "fluentd-sub-second-precision",
            "fluentd-write-timeout",
            *attributes.OPTIONS,
        }
    ),
    "journald": attributes.OPTIONS,
}


class LogRetention(msgspec.Struct, frozen=True):
    """The part of a log that stays on this host; `max_size` 0 is everything."""

    max_size: int = 0
    max_files: int = 1
    compress: bool = False

    def in_parts(self) -> "LogRetention":
        """The same with two files at least: one alone would be empty, and with it the log, each time it is full."""
        return self if self.max_files > 1 else LogRetention((self.max_size + 1) // 2, 2)


def check(driver: str, options: Mapping[str, str]) -> None:
    """Raise for what dockerd would refuse, and for what Husk cannot do."""
    if driver not in DRIVERS:
        if driver in _DOCKERS_OWN:
            raise NotImplementedYet(f"log driver {driver} is not implemented by Husk yet")
        raise InvalidParameter(f'error looking up logging plugin {driver}: plugin "{driver}" not found')
    if sum(map(len, options)) + sum(map(len, options.values())) > _MOST_OPTIONS:
        raise InvalidParameter(f"the options of log driver {driver} take more than {_MOST_OPTIONS} characters")
    if driver == "none":
        return
    _check_mode(options)
    # dockerd takes the options of its cache with every driver.
    for name in options:
        if name not in _KNOWN[driver] | _COMMON | _CACHE:
            raise InvalidParameter(_unknown(driver, name))
    try:
        keeping(driver, options)
        attributes.check(options)
    except InvalidParameter as error:
        raise InvalidParameter(f"failed to initialize logging driver: {error.message}") from None


def keeping(driver: str, options: Mapping[str, str]) -> LogRetention:
    """Read the limits of what is kept of the log on this host; InvalidParameter where they contradict each other."""
    if driver == "json-file":
        result = LogRetention(
            max_size=_positive_size(options["max-size"]) if "max-size" in options else 0,
            max_files=_count(options.get("max-file", "1")),
            compress=flag(options.get("compress", "false")),
        )
        if result.max_files < 1:
            raise InvalidParameter("max-file cannot be less than 1")
        if result.compress and (result.max_files < 2 or not result.max_size):
            raise InvalidParameter("compress cannot be true when max-file is less than 2 or max-size is not set")
        return result
    if driver == "none":
        return LogRetention()
    prefix = "" if driver == "local" else "cache-"
    result = LogRetention(
        max_size=size(options.get(prefix + "max-size", "20m")),
        max_files=_count(options.get(prefix + "max-file", "5")),
        compress=flag(options.get(prefix + "compress", "true")),
    )
    if result.max_files <= 1 and result.compress:
        raise InvalidParameter("compression cannot be enabled when max file count is 1")
    return result


def readable(driver: str, options: Mapping[str, str]) -> bool:
    """Return True if `docker logs` can show the log."""
    if driver in KEPT:
        return True
    return driver != "none" and not flag(options.get("cache-disabled", "false"))


def size(text: str) -> int:
    """Bytes, of a number with an optional unit (`10m`)."""
    match = _SIZE.fullmatch(text)
    if match is None or match[1].count(".") > 1 or len(match[1]) > _MOST_DIGITS:
        raise InvalidParameter(f"invalid size: '{text}'")
    return int(float(match[1]) * 1024 ** " kmgtp".index((match[2] or " ").lower()))


def flag(text: str) -> bool:
    if text not in (*_TRUE, *_FALSE):
        raise InvalidParameter(f'strconv.ParseBool: parsing "{text}": invalid syntax')
    return text in _TRUE


def _positive_size(text: str) -> int:
    if (value := size(text)) <= 0:
        raise InvalidParameter("max-size must be a positive number")
    return value


def _count(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise InvalidParameter(f'strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)


def _check_mode(options: Mapping[str, str]) -> None:
    mode = options.get("mode", "blocking")
    if mode not in ("", "blocking", "non-blocking"):
        raise InvalidParameter(f"logger: logging mode not supported: {mode}")
    if "max-buffer-size" in options:
        if mode != "non-blocking":
            raise InvalidParameter("logger: max-buffer-size option is only supported with 'mode=non-blocking'")
        try:
            size(options["max-buffer-size"])
        except InvalidParameter as error:
            raise InvalidParameter(f"error parsing option max-buffer-size: {error.message}") from None


def _unknown(driver: str, name: str) -> str:
    if driver == "local":
        return f"unknown log opt '{name}' for log driver local"
    if driver == "gelf":
        return f'unknown log opt "{name}" for gelf log driver'
    return f"unknown log opt '{name}' for {driver} log driver"
