"""Headers of answers, whatever bytes are in them. Pure."""

import json
from urllib.parse import quote, urljoin

from husk.errors import SystemFault
from husk.text.urls import split_url

_ASCII = "".join(map(chr, range(0x21, 0x7F)))


def readable(value: str) -> str:
    """The text of a header. What is no UTF-8 is replaced: aiohttp makes surrogates of it, which no answer can hold."""
    return value.encode(errors="surrogateescape").decode(errors="replace")


def resolve_location(base: str, location: str) -> str:
    """The URL that a Location of the answer at `base` means; SystemFault if it means none.

    A name and a password in it are left out: who we are somewhere is not for a server to say.
    """
    try:
        parts = split_url(urljoin(base, quote(location.encode(errors="surrogateescape"), safe=_ASCII)))
        _ = parts.port  # which is no number in a bad one
    except ValueError as error:
        raise SystemFault(f"failed to parse Location header {json.dumps(readable(location))}: {error}") from error
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
