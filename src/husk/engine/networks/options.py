"""May a network be made like this? Reads a request, says what is wrong in Docker's words, and touches nothing."""

import ipaddress
import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network

from husk.engine.networks.model import (
    BRIDGE_NAME,
    BUILTIN,
    HOST_BINDING,
    ICC,
    MASQUERADE,
    MTU,
    IpamConfig,
    Network,
    NetworkRequest,
)
from husk.errors import Conflict, Forbidden, InvalidParameter, NotFound, NotImplementedYet
from husk.network.bridge import BridgeSettings
from husk.network.firewall import validate_interface

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*", re.ASCII)
_DRIVERS_OF_DOCKER = ("macvlan", "ipvlan", "overlay")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
# Options that Docker's bridge driver knows and that change nothing while there is no IPv6.
_WITHOUT_EFFECT = ("com.docker.network.container_iface_prefix", "com.docker.network.enable_ipv6")
_GATEWAY_MODE = "com.docker.network.bridge.gateway_mode_ipv4"
_GATEWAY_MODES = ("", "nat")


def check(request: NetworkRequest, existing: Iterable[Network]) -> None:
    """Raise for the first thing that is wrong with a request for a bridge network."""
    others = list(existing)
    _check_name(request.name, others)
    _check_driver(request)
    _check_options(request, others)
    if len(request.ipam.config) > 1:
        pools = [config for config in request.ipam.config if not _is_ipv6(config)]
        if len(pools) > 1:
            raise InvalidParameter("bridge driver supports only one IPv4 address pool")
    if request.enable_ipv6 or any(map(_is_ipv6, request.ipam.config)):
        raise NotImplementedYet("IPv6 on networks is not implemented by Husk yet")
    for config in request.ipam.config:
        _check_pool(config)
        if config.subnet:
            wanted = IPv4Network(config.subnet)
            if any(other.subnet and wanted.overlaps(IPv4Network(other.subnet)) for other in others):
                raise Forbidden("invalid pool request: Pool overlaps with other one on this address space")


def record(request: NetworkRequest, network_id: str, created: str) -> Network:
    """The network of a request that `check` let pass; without a subnet if it asks for none."""
    pool = request.ipam.config[0] if request.ipam.config else IpamConfig()
    gateway = pool.gateway
    if pool.subnet and not gateway:
        first = IPv4Network(pool.ip_range) if pool.ip_range else IPv4Network(pool.subnet)
        gateway = str(_free_host(first, pool))
    return Network(
        id=network_id,
        name=request.name,
        driver="bridge",
        created=created,
        subnet=pool.subnet,
        gateway=gateway,
        ip_range=pool.ip_range,
        aux_addresses=pool.auxiliary_addresses,
        chosen_subnet=bool(pool.subnet),
        ipam_options=request.ipam.options,
        internal=request.internal,
        attachable=request.attachable,
        options=request.options,
        labels=request.labels,
    )


def settings(network: Network, base: BridgeSettings) -> BridgeSettings:
    """How the driver of a network is to behave."""
    options = network.options
    return base._replace(
        interface=network.bridge_name,
        bip=network.gateway_interface if network.subnet else "",
        ip_range=network.ip_range,
        reserved=tuple(network.aux_addresses.values()),
        internal=network.internal,
        icc=_truth(options, ICC),
        masquerade=_truth(options, MASQUERADE),
        mtu=int(options.get(MTU) or 0),
    )


def _check_name(name: str, others: Iterable[Network]) -> None:
    if not name.strip():
        raise InvalidParameter("invalid name: name is empty")
    if _NAME.fullmatch(name) is None:
        raise InvalidParameter(
            f"invalid network name ({name}): letters, digits, '_', '.' and '-' are allowed, a letter or digit first"
        )
    if name in (*BUILTIN, "default"):
        raise Forbidden(f"operation is not permitted on predefined {name} network")
    if any(other.name == name for other in others):
        raise Conflict(f"network with name {name} already exists")


def _check_driver(request: NetworkRequest) -> None:
    driver = request.driver or "bridge"
    if driver in ("host", "null"):
        raise Forbidden(f'only one instance of "{driver}" network is allowed')
    if driver in _DRIVERS_OF_DOCKER:
        raise NotImplementedYet(f"network driver {driver} is not implemented by Husk yet")
    if driver != "bridge":
        raise NotFound(f'could not find plugin {driver} in v1 plugin registry: plugin "{driver}" not found')
    if request.scope not in ("", "local"):
        raise NotImplementedYet(f"networks of scope {request.scope} are not implemented by Husk yet")
    if request.config_only or request.config_from.network:
        raise NotImplementedYet("ConfigOnly and ConfigFrom networks are not implemented by Husk yet")
    if request.ingress:
        raise NotImplementedYet("ingress networks are not implemented by Husk yet")
    if request.ipam.driver not in ("", "default"):
        raise InvalidParameter(f"there is no IPAM driver {request.ipam.driver!r}: 'default' is the only one")
    if not request.enable_ipv4:
        raise InvalidParameter("IPv4 or IPv6 must be enabled")


def _check_options(request: NetworkRequest, others: Iterable[Network]) -> None:
    options = request.options
    for name in (ICC, MASQUERADE):
        _truth(options, name)
    if (mode := options.get(_GATEWAY_MODE, "")) not in _GATEWAY_MODES:
        raise NotImplementedYet(f"gateway mode {mode[:40]} is not implemented by Husk yet")
    mtu = options.get(MTU, "")
    if mtu and not (mtu.isascii() and mtu.isdigit() and (mtu == "0" or 68 <= int(mtu) <= 65535)):
        raise InvalidParameter(f"invalid value for {MTU}: {mtu[:40]!r}")
    if binding := options.get(HOST_BINDING, ""):
        try:
            IPv4Address(binding)
        except ValueError as error:
            raise InvalidParameter(f"invalid value for {HOST_BINDING}: {error}") from error
    if name := options.get(BRIDGE_NAME, ""):
        validate_interface(name)
        for other in others:
            if other.driver == "bridge" and other.bridge_name == name:
                raise Forbidden(
                    f"cannot create network {request.name} ({name}): conflicts with network {other.id} ({name}): "
                    "networks have same bridge name"
                )


def _check_pool(config: IpamConfig) -> None:
    try:
        subnet = IPv4Network(config.subnet) if config.subnet else None
    except ValueError as error:
        raise InvalidParameter(f"invalid network config:\ninvalid subnet {config.subnet}: {error}") from error
    if subnet is None:
        if config.gateway or config.ip_range or config.auxiliary_addresses:
            raise InvalidParameter("invalid network config:\nno matching subnet: Subnet is needed with the rest of it")
        return
    if subnet.prefixlen > 30:
        raise InvalidParameter(f"invalid network config:\nsubnet {subnet} has no room for a gateway and a container")
    if config.ip_range:
        try:
            within = IPv4Network(config.ip_range)
        except ValueError as error:
            raise InvalidParameter(f"invalid network config:\ninvalid ip-range {config.ip_range}: {error}") from error
        if not within.subnet_of(subnet):
            raise InvalidParameter(
                f"invalid network config:\ninvalid ip-range {within}: parent subnet {subnet} does not contain it"
            )
    named = {"gateway": config.gateway, **config.auxiliary_addresses}
    taken = set()
    for what, text in named.items():
        if not text:
            continue
        kind = "gateway" if what == "gateway" else "auxiliary"
        try:
            address = IPv4Address(text)
        except ValueError as error:
            raise InvalidParameter(f"invalid network config:\ninvalid {kind} address {text}: {error}") from error
        if address not in subnet or address in (subnet.network_address, subnet.broadcast_address):
            raise InvalidParameter(f"invalid network config:\ninvalid {kind} address {text}: parent subnet is {subnet}")
        if address in taken:
            raise Forbidden("failed to allocate secondary ip address: Address already in use")
        taken.add(address)


def _free_host(subnet: IPv4Network, pool: IpamConfig) -> IPv4Address:
    """The gateway of a pool whose owner named none: the first address that no auxiliary one takes."""
    taken = {IPv4Address(text) for text in pool.auxiliary_addresses.values()}
    whole = IPv4Network(pool.subnet)
    for number in range(int(subnet.network_address), int(subnet.broadcast_address) + 1):
        address = IPv4Address(number)
        if address not in taken and address not in (whole.network_address, whole.broadcast_address):
            return address
    raise InvalidParameter(f"invalid network config:\nno address is left for the gateway in {subnet}")


def _is_ipv6(config: IpamConfig) -> bool:
    try:
        return bool(config.subnet) and ipaddress.ip_network(config.subnet, strict=False).version == 6
    except ValueError:
        return False


def _truth(options: dict[str, str], name: str) -> bool:
    value = options.get(name, "true")
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise InvalidParameter(f"invalid value for {name}: {value[:40]!r} is neither true nor false")
