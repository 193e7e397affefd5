"""Checks a request for a network, says what is wrong in Docker's words, and makes its record and settings. Pure.

Settings that a network takes from one that is only a configuration: `--config-only` and `--config-from`.

Docker has these so that each host of a swarm can give a network of one name settings of its own: the configuration says
which subnet, driver options and labels, the network made from it says the driver and who may use it.
"""

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address

import msgspec
from msgspec import structs

from husk.engine.model.network import (
    ANNOUNCEMENT_INTERVAL,
    ANNOUNCEMENTS,
    BRIDGE_NAME,
    BUILTIN,
    ENABLE_IPV4,
    ENABLE_IPV6,
    FALSE,
    GATEWAY_MODE_4,
    GATEWAY_MODE_6,
    GATEWAY_MODES,
    HOST_BINDING,
    ICC,
    INHIBIT_IPV4,
    INTERFACE_PREFIX,
    MASQUERADE,
    MTU,
    PARENT,
    PARENT_DRIVERS,
    TRUE,
    ConfigSource,
    IpamConfig,
    IpamRequest,
    Network,
    NetworkRequest,
)
from husk.engine.networks import pools
from husk.errors import Conflict, Forbidden, InvalidParameter, NotFound, NotImplementedYet
from husk.network.sandbox import ParentLink
from husk.network.settings import BridgeSettings
from husk.text.interface_names import validate_interface
from husk.text.patterns import pattern

_NAME_IN_SWARM = pattern(r"[a-zA-Z0-9](?:[-_]*[a-zA-Z0-9])*", re.ASCII)
_LONGEST_LABEL = 63
_LEAST_MTU_6 = 1280
_SWARM_SAYS = "rpc error: code = InvalidArgument desc = "
# The kernel's numbers for what may be asked for.
_MACVLAN_MODES = {"": 4, "bridge": 4, "private": 1, "vepa": 2, "passthru": 8}
_IPVLAN_MODES = {"": 0, "l2": 0, "l3": 1, "l3s": 2}
# With a number behind it, it is the name of an interface.
_PREFIX = pattern(r"[a-zA-Z_][a-zA-Z0-9_-]{0,10}", re.ASCII)
_INTEGER = pattern(r"[+-]?\d{1,18}", re.ASCII)
_NUMBERS = ((ANNOUNCEMENTS, "an integer", 0, 3), (ANNOUNCEMENT_INTERVAL, "integer milliseconds", 100, 2000))
_IPVLAN_FLAGS = {"": 0, "bridge": 0, "private": 1, "vepa": 2}


def with_defaults(request: NetworkRequest, usual: Mapping[str, Mapping[str, str]]) -> NetworkRequest:
    """The request with the daemon's options for its driver where it names none, and with both versions of IP decided.

    A network that takes its settings from another gets none of the daemon's.
    """
    found = dict(request.options)
    if not request.config_from.network:
        found = {**usual.get(request.driver or "bridge", {}), **found}
    versions = {}
    for name, given, otherwise in ((ENABLE_IPV4, request.enable_ipv4, True), (ENABLE_IPV6, request.enable_ipv6, False)):
        if given is None:
            versions[name] = _truth(found, name) if name in found else otherwise
        else:
            found.pop(name, None)
            versions[name] = given
    return structs.replace(request, options=found, enable_ipv4=versions[ENABLE_IPV4], enable_ipv6=versions[ENABLE_IPV6])


def check(request: NetworkRequest, existing: Iterable[Network]) -> None:
    """Raise for the first thing that is wrong with a request, which `templates` has filled in."""
    others = list(existing)
    _check_name(request, others)
    if not request.config_only:
        # A configuration has no driver: its options are checked when somebody uses it.
        _check_driver(request)
        if request.ingress:
            _check_ingress(request, others)
        _check_options(request, others)
    if request.driver in PARENT_DRIVERS and not request.config_only:
        _check_upper(request, others)
    pools.check(request, others)


def record(request: NetworkRequest, network_id: str, created: str) -> Network:
    """The network of a request that `check` let pass; without a subnet if it asks for none."""
    pool = pools.pool_of(request, 4) if request.enable_ipv4 else IpamConfig()
    pool6 = pools.pool_of(request, 6) if request.enable_ipv6 else IpamConfig()
    scope = "swarm" if request.driver == "overlay" and not request.config_only else "local"
    pair = ((4, pool), (6, pool6))
    network = Network(
        id=network_id,
        name=request.name,
        driver="null" if request.config_only else request.driver or "bridge",
        created=created,
        scope=scope,
        subnet=pool.subnet,
        gateway=pools.named_gateway(pool),
        ip_range=pool.ip_range,
        aux_addresses=pool.auxiliary_addresses,
        chosen_subnet=bool(pool.subnet),
        subnet6=pool6.subnet,
        gateway6=pools.named_gateway(pool6),
        ip_range6=pool6.ip_range,
        aux_addresses6=pool6.auxiliary_addresses,
        chosen_subnet6=bool(pool6.subnet),
        enable_ipv4=bool(request.enable_ipv4),
        enable_ipv6=bool(request.enable_ipv6),
        ipam_options=request.ipam.options,
        internal=request.internal,
        attachable=request.attachable,
        ingress=request.ingress,
        options=request.options,
        labels=request.labels,
        config_only=request.config_only,
        config_from=request.config_from.network,
        untold_gateways=[n for n, asked in pair if scope == "local" and asked.subnet and not asked.gateway],
    )
    if network.config_only:
        return network
    return structs.replace(
        network,
        gateway=network.gateway if 4 in network.bare else pools.gateway_of(pool),
        gateway6=network.gateway6 if 6 in network.bare else pools.gateway_of(pool6),
    )


def settings(network: Network, base: BridgeSettings) -> BridgeSettings:
    """Return the settings of the driver of a network."""
    options = network.options
    gateways = ((4, network.gateway), (6, network.gateway6))
    announcements, milliseconds = (_number(options, *told) for told in _NUMBERS)
    behaviour = base._replace(
        interface=network.bridge_name,
        bip=network.gateway_interface if network.subnet else "",
        ip_range=network.ip_range,
        reserved=(
            *network.aux_addresses.values(),
            *network.aux_addresses6.values(),
            # On one that hosts share, records tell who has an address.
            *(() if network.vni else network.service_addresses),
            # One that somebody chose belongs to no container, though nobody has it here.
            *(gateway for version, gateway in gateways if version in network.bare and gateway),
        ),
        internal=network.internal,
        icc=_truth(options, ICC),
        masquerade=_truth(options, MASQUERADE),
        mtu=int(options.get(MTU) or 0),
        bip6=network.gateway_interface6 if network.subnet6 else "",
        pool6=base.pool6 if network.enable_ipv6 and not network.subnet6 else "",
        ip_range6=network.ip_range6,
        ipv4=network.enable_ipv4,
        bare=network.bare,
        silent=network.silent,
        # Its addresses are given out one by one, to those who need them.
        warm=0 if network.vni else base.warm,
        own=tuple(network.service_addresses),
        gateway_modes=network.gateway_modes,
        announcements=base.announcements if announcements is None else announcements,
        announcement_interval=base.announcement_interval if milliseconds is None else milliseconds / 1000,
        # Somebody has asked for it, or other hosts are to hear it.
        prefix=options.get(INTERFACE_PREFIX) or "eth",
        always_announced=announcements is not None or bool(network.vni) or network.on_parent,
    )
    if not network.on_parent:
        return behaviour
    alone = not options.get(PARENT)
    return behaviour._replace(
        interface=network.parent,
        parent_link=_parent_link(network),
        alone=alone,
        # Without a parent there is nobody behind the gateway.
        internal=network.internal or alone,
        warm=0,
    )


def _parent_link(network: Network) -> ParentLink:
    options = network.options
    if network.driver == "macvlan":
        return ParentLink("macvlan", _MACVLAN_MODES[options.get("macvlan_mode", "")])
    mode, flag = _IPVLAN_MODES[options.get("ipvlan_mode", "")], _IPVLAN_FLAGS[options.get("ipvlan_flag", "")]
    return ParentLink("ipvlan", mode, flag, network.routes)


def _check_upper(request: NetworkRequest, others: Iterable[Network]) -> None:
    options, driver = request.options, request.driver
    if (mode := options.get("macvlan_mode", "")) not in _MACVLAN_MODES:
        raise InvalidParameter(
            f"requested macvlan mode '{mode[:40]}' is not valid, 'bridge' mode is the macvlan default"
        )
    if (mode := options.get("ipvlan_mode", "")) not in _IPVLAN_MODES:
        raise InvalidParameter(
            f"requested ipvlan mode '{mode[:40]}' is not valid, 'l2' mode is the ipvlan driver default"
        )
    if (flag := options.get("ipvlan_flag", "")) not in _IPVLAN_FLAGS:
        raise InvalidParameter(
            f"requested ipvlan flag '{flag[:40]}' is not valid, 'bridge' is the ipvlan driver default"
        )
    parent = options.get(PARENT, "")
    if parent == "lo":
        raise InvalidParameter(f"loopback interface is not a valid {driver} parent link")
    if parent:
        validate_interface(parent)
        for other in others:
            if other.on_parent and other.parent == parent:
                raise Forbidden(f"network {other.name} is already using parent interface {parent}")


def _check_name(request: NetworkRequest, others: Iterable[Network]) -> None:
    """Any name that is not blank is fine, as with dockerd; one in a swarm is part of host names."""
    name = request.name
    if not name.strip():
        raise InvalidParameter("invalid name: name is empty")
    if name in (*BUILTIN, "default"):
        raise Forbidden(f"operation is not permitted on predefined {name} network")
    if any(other.name == name for other in others):
        raise Conflict(f"network with name {name} already exists")
    if request.driver == "overlay" and not request.config_only:
        if _NAME_IN_SWARM.fullmatch(name) is None:
            raise InvalidParameter(f"{_SWARM_SAYS}name must be valid as a DNS name component")
        if len(name) > _LONGEST_LABEL:
            raise InvalidParameter(f"{_SWARM_SAYS}name must be {_LONGEST_LABEL} characters or fewer")


def _check_driver(request: NetworkRequest) -> None:
    driver = request.driver or "bridge"
    if driver in ("host", "null"):
        raise Forbidden(f'only one instance of "{driver}" network is allowed')
    if driver not in ("bridge", "overlay", *PARENT_DRIVERS):
        raise NotFound(f'plugin "{driver}" not found')
    if request.scope not in ("", "swarm" if driver == "overlay" else "local"):
        raise NotImplementedYet(f"networks of scope {request.scope} are not implemented by Husk yet")
    if request.ipam.driver not in ("", "default"):
        raise InvalidParameter(f"there is no IPAM driver {request.ipam.driver!r}: 'default' is the only one")
    if not request.enable_ipv4 and driver == "overlay":
        raise InvalidParameter("IPv4 cannot be disabled in a Swarm scoped network")
    if not request.enable_ipv4 and not request.enable_ipv6:
        raise InvalidParameter("IPv4 or IPv6 must be enabled")


def _check_ingress(request: NetworkRequest, others: Iterable[Network]) -> None:
    if request.driver != "overlay":
        raise Forbidden("Ingress network can only be global scope network")
    if request.attachable:
        raise InvalidParameter(f"{_SWARM_SAYS}ingress network cannot be attachable")
    for other in others:
        if other.ingress:
            raise Conflict(f"rpc error: code = AlreadyExists desc = ingress network ({other.id}) is already present")


def _check_options(request: NetworkRequest, others: Iterable[Network]) -> None:
    options = request.options
    for name in (ICC, MASQUERADE):
        _truth(options, name)
    for name in (GATEWAY_MODE_4, GATEWAY_MODE_6):
        if (mode := options.get(name, "")) not in GATEWAY_MODES:
            raise InvalidParameter(f"unknown gateway mode {mode[:40]}")
        if mode == "isolated" and not request.internal:
            raise InvalidParameter("gateway mode 'isolated' can only be used for an internal network")
    if (inhibit := options.get(INHIBIT_IPV4, "false")) not in TRUE | FALSE:
        raise InvalidParameter(
            f"failed to parse {INHIBIT_IPV4} value: {inhibit[:40]} "
            f'(strconv.ParseBool: parsing "{inhibit[:40]}": invalid syntax)'
        )
    mtu = options.get(MTU, "")
    if mtu and not (mtu.isascii() and mtu.isdigit() and len(mtu) <= 5 and (mtu == "0" or 68 <= int(mtu) <= 65535)):
        raise InvalidParameter(_not_an_mtu(mtu[:40]))
    if request.enable_ipv6 and 0 < int(mtu or 0) < _LEAST_MTU_6:
        raise InvalidParameter(f"invalid value for {MTU}: {mtu} is less than IPv6 needs, {_LEAST_MTU_6}")
    if (prefix := options.get(INTERFACE_PREFIX, "")) and not _PREFIX.fullmatch(prefix):
        raise InvalidParameter(
            f"invalid value for {INTERFACE_PREFIX}: {prefix[:40]!r} is not 1 to 11 letters, digits, '_' or '-' that "
            "begin with a letter"
        )
    for name, kind, least, most in _NUMBERS:
        _number(options, name, kind, least, most)
    if binding := options.get(HOST_BINDING, ""):
        try:
            IPv4Address(binding)
        except ValueError as error:
            raise InvalidParameter(f"invalid value for {HOST_BINDING}: {error}") from error
    if name := options.get(BRIDGE_NAME, ""):
        validate_interface(name)
        for other in others:
            if other.bridged and other.bridge_name == name:
                raise Forbidden(
                    f"cannot create network {request.name} ({name}): conflicts with network {other.id} ({name}): "
                    "networks have same bridge name"
                )


def _not_an_mtu(text: str) -> str:
    if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit():
        return f"invalid MTU number: {text}"
    return f'failed to parse {MTU} value: {text} (strconv.Atoi: parsing "{text}": invalid syntax)'


def _number(options: Mapping[str, str], name: str, kind: str, least: int, most: int) -> int | None:
    """Read the number that an option says, as dockerd does; None when it says nothing."""
    if (text := options.get(name)) is None:
        return None
    if not _INTEGER.fullmatch(text):
        raise InvalidParameter(f'value for option {name} "{text[:40]}" must be {kind}')
    if not least <= int(text) <= most:
        raise InvalidParameter(f"{name} must be in the range {least} to {most}")
    return int(text)


def _truth(options: Mapping[str, str], name: str) -> bool:
    value = options.get(name, "true")
    if value in TRUE:
        return True
    if value in FALSE:
        return False
    raise InvalidParameter(f"invalid value for {name}: {value[:40]!r} is neither true nor false")


def check_template(request: NetworkRequest) -> None:
    """Raise for what a configuration may not say, and what goes with none."""
    if request.config_only and (request.ingress or request.internal or request.attachable or request.scope):
        raise Forbidden(
            "configuration network can only contain network specific fields. Network operator fields like "
            "[ ingress | internal | attachable | scope ] are not supported."
        )
    if not request.config_from.network:
        return
    if request.config_only:
        raise Forbidden("a configuration network cannot depend on another configuration network")
    ipam = request.ipam
    if (
        ipam.driver not in ("", "default")
        or not request.enable_ipv4
        or request.enable_ipv6
        or request.labels
        or ipam.options
        or ipam.config
    ):
        raise Forbidden(
            "user specified configurations are not supported if the network depends on a configuration network"
        )
    if request.options:
        raise Forbidden("network driver options are not supported if the network depends on a configuration network")


def filled_in(request: NetworkRequest, existing: Iterable[Network]) -> NetworkRequest:
    """The request with what its configuration says; as it is when it names none."""
    reference = request.config_from.network
    if not reference:
        return request
    for network in existing:
        if network.config_only and reference in (network.name, network.id):
            break
    else:
        raise NotFound(f'configuration network "{reference}" does not exist')
    pools = [
        IpamConfig(subnet=subnet, gateway=gateway, ip_range=ip_range, auxiliary_addresses=auxiliary)
        for subnet, gateway, ip_range, auxiliary in (
            (network.subnet, network.gateway, network.ip_range, network.aux_addresses),
            (network.subnet6, network.gateway6, network.ip_range6, network.aux_addresses6),
        )
        if subnet
    ]
    return msgspec.structs.replace(
        request,
        config_from=ConfigSource(network=network.name),
        ipam=IpamRequest(options=network.ipam_options, config=pools),
        enable_ipv4=network.enable_ipv4,
        enable_ipv6=network.enable_ipv6,
        options=network.options,
        labels=network.labels,
    )


def template_users(network: Network, existing: Iterable[Network]) -> list[Network]:
    """The networks that were made from a configuration."""
    return [other for other in existing if network.config_only and other.config_from == network.name]
