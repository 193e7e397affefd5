"""Names of network interfaces, as the kernel and nftables take them. Pure."""

from husk.errors import InvalidParameter
from husk.text.patterns import pattern

_INTERFACE_NAME = pattern(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,14}")


def validate_interface(name: str) -> str:
    if not _INTERFACE_NAME.fullmatch(name):
        raise InvalidParameter(f"invalid bridge name {name!r}: 1 to 15 letters, digits, '_', '.' or '-'")
    if name in ("all", "default"):
        raise InvalidParameter(f"invalid bridge name {name!r}: the kernel means all interfaces by it")
    return name
