"""Signals as clients name them: with or without SIG, in any case, or by number."""

import re
import signal as _signal

from husk.errors import InvalidParameter

_NAMES = {s.name.removeprefix("SIG"): int(s) for s in _signal.Signals}
_NAMES.update({"IOT": 6, "POLL": 29, "CLD": 17})
_NAMES.update({f"RTMIN+{n}": 34 + n for n in range(1, 16)})
_NAMES.update({f"RTMAX-{n}": 64 - n for n in range(1, 15)})

# One that there might be.
_NUMBER = re.compile(r"[-+]?0*[1-9][0-9]{0,8}", re.ASCII)


def parse_signal(text: str) -> int:
    if text.isascii() and text.isdigit():
        if len(text) <= 3 and 1 <= (number := int(text)) <= 64:
            return number
    elif (known := _NAMES.get(text.upper().removeprefix("SIG"))) is not None:
        return known
    if _NUMBER.fullmatch(text):
        raise InvalidParameter(f"the linux daemon does not support signal {int(text)}")
    raise InvalidParameter(f"invalid signal: {text}")


def stop_signal(named: str | None) -> int:
    """The signal that asks a container to end. What an image names may be no signal, and must not keep anybody from
    ending its containers: that counts as not named."""
    try:
        return parse_signal(named or "SIGTERM")
    except InvalidParameter:
        return int(_signal.SIGTERM)
