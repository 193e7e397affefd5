"""The address of an etcd that is a swarm's store, as a setting: `etcd://10.0.0.1,10.0.0.2:2379`. Pure."""

from husk.errors import InvalidParameter
from husk.text.endpoints import HostPort, read_endpoint

PORT = 2379
_FORM = "etcd://HOST[:PORT][,HOST[:PORT]…]"


def read_address(address: str) -> tuple[HostPort, ...]:
    """The members that an address names."""
    rest = address.removeprefix("etcd://")
    if rest == address:
        raise InvalidParameter(f"the cluster store {address!r} is not of the form {_FORM}")
    found = tuple(_endpoint(part.strip(), address) for part in rest.rstrip("/").split(","))
    if len(set(found)) < len(found):
        raise InvalidParameter(f"the cluster store {address!r} names one member twice")
    return found


def _endpoint(part: str, address: str) -> HostPort:
    try:
        return read_endpoint(part, PORT)
    except InvalidParameter as error:
        raise InvalidParameter(f"the cluster store {address!r} is not of the form {_FORM}: {error}") from None
