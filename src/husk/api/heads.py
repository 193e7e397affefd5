"""Where does the head of a request end? Pure: bytes in, an answer out.

A head may come in any number of pieces. Whoever changes heads before they are parsed must have the whole of one.
"""

import re

# aiohttp's parser refuses what is longer than this long before its end.
LONGEST = 64 << 10

_UPGRADE = re.compile(rb"\r\nupgrade:[ \t]*tcp[ \t]*(?=\r\n)", re.IGNORECASE)
_REQUEST_LINE = re.compile(rb"[A-Z]+ [^ ]+ HTTP/1\.[01]")
# What aiohttp refuses to see twice, and Go's parser reads once. Lengths, hosts and encodings are no matter of taste.
_ONCE = re.compile(
    rb"\r\n(content-type|content-location|content-range|etag|max-forwards|server|user-agent):[^\r\n]*(?=\r\n[^ \t])",
    re.IGNORECASE,
)
_STRAY_END = re.compile(rb"(?<!\r)\n")


def is_unfinished(data: bytes) -> bool:
    """Is this a head whose end is still to come? Not so for what is no head: that is the parser's to refuse."""
    if len(data) > LONGEST or b"\r\n\r\n" in data or not b"A" <= data[:1] <= b"Z":
        return False
    line, ended, _ = data.partition(b"\r\n")
    return _STRAY_END.search(data) is None and (not ended or _REQUEST_LINE.fullmatch(line) is not None)


def without_repeats(data: bytes) -> bytes:
    """The head with the first of each header that counts once, as dockerd reads it; as it is, if none is repeated."""
    end = data.find(b"\r\n\r\n") + 3
    seen: set[bytes] = set()
    kept, begin = b"", 0
    for match in _ONCE.finditer(data, 0, end):
        if (name := match[1].lower()) in seen:
            kept += data[begin : match.start()]
            begin = match.end()
        seen.add(name)
    return kept + data[begin:] if begin else data


def upgradable(data: bytes) -> bytes:
    """The head of a request for `Upgrade: tcp` as aiohttp's parser understands it; anything else as it is."""
    if not data.startswith(b"POST "):
        return data
    match = _UPGRADE.search(data, 0, data.find(b"\r\n\r\n") + 2)
    return data[: match.start()] + b"\r\nUpgrade: websocket" + data[match.end() :] if match else data
