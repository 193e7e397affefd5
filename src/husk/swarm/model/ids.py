"""Ids of the cluster's objects, of 25 characters as Docker's, and names that are safe everywhere."""

import re
import secrets

from husk.errors import InvalidParameter
from husk.text.patterns import pattern

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_NAME = pattern(r"[a-zA-Z0-9](?:[-_]*[A-Za-z0-9])*", re.ASCII)
_OBJECT_NAME = pattern(r"[a-zA-Z0-9](?:[a-zA-Z0-9-_.]*[a-zA-Z0-9])?", re.ASCII)


def new_id() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(25))


def check_service_name(name: str) -> str:
    if not name:
        raise InvalidParameter("rpc error: code = InvalidArgument desc = name must be provided")
    if len(name) > 63:
        raise InvalidParameter("rpc error: code = InvalidArgument desc = name must be 63 characters or fewer")
    if _NAME.fullmatch(name) is None:
        raise InvalidParameter("rpc error: code = InvalidArgument desc = name must be valid as a DNS name component")
    return name


def check_object_name(name: str) -> str:
    if not name or len(name) > 64 or _OBJECT_NAME.fullmatch(name) is None:
        raise InvalidParameter(
            "rpc error: code = InvalidArgument desc = invalid name, only 64 [a-zA-Z0-9-_.] characters allowed, and the "
            "start and end character must be [a-zA-Z0-9]"
        )
    return name
