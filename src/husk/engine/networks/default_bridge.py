"""The default network follows the daemon's settings at every start, and its record follows them too. Pure."""

from ipaddress import IPv4Network, IPv6Interface, IPv6Network

from msgspec.structs import replace

from husk.config import Config
from husk.engine.model.network import BRIDGE_NAME, DEFAULT_BRIDGE, HOST_BINDING, ICC, MASQUERADE, MTU, Network
from husk.network.ipam import first_host, first_host_6
from husk.network.settings import BridgeSettings

_STANDARD_MTU = 1500
_DOCKER = "docker0"
# What dockerd calls gateways that containers use instead of the bridge.
_GATEWAY_4, _GATEWAY_6 = "DefaultGatewayIPv4", "DefaultGatewayIPv6"


def settled(network: Network, config: Config) -> Network:
    """Return the record as the settings want it; a subnet that was chosen before stays."""
    wanted = config.default_bridge
    options = {
        DEFAULT_BRIDGE: "true",
        ICC: _word(wanted.icc),
        MASQUERADE: _word(wanted.ip_masq),
        BRIDGE_NAME: config.bridge_name,
        MTU: str(wanted.mtu or _STANDARD_MTU),
    }
    if wanted.ip:
        options[HOST_BINDING] = wanted.ip
    chosen = _bip6(network, config)
    return replace(
        network,
        options=options,
        ip_range=wanted.fixed_cidr,
        aux_addresses={_GATEWAY_4: wanted.default_gateway} if wanted.default_gateway else {},
        aux_addresses6={_GATEWAY_6: wanted.default_gateway_v6} if wanted.ipv6 and wanted.default_gateway_v6 else {},
        enable_ipv6=wanted.ipv6,
        ip_range6=wanted.fixed_cidr_v6 if wanted.ipv6 else "",
        subnet6=str(IPv6Interface(chosen).network) if chosen else "",
        gateway6=str(IPv6Interface(chosen).ip) if chosen else "",
    )


def settings(network: Network, config: Config, base: BridgeSettings) -> BridgeSettings:
    """Return the settings of the default bridge's driver."""
    wanted = config.default_bridge
    bip6 = network.gateway_interface6 if network.subnet6 else ""
    return base._replace(
        bip=_bip(config),
        ip_range=wanted.fixed_cidr,
        reserved=tuple(filter(None, (wanted.default_gateway, wanted.default_gateway_v6 if wanted.ipv6 else ""))),
        # One of another name than we give is the administrator's, as with dockerd.
        must_exist=bool(config.bridge) and config.bridge not in (_DOCKER, replace(config, bridge="").bridge_name),
        icc=wanted.icc,
        masquerade=wanted.ip_masq,
        mtu=wanted.mtu,
        bip6=bip6,
        pool6=base.pool6 if wanted.ipv6 and not bip6 else "",
        ip_range6=network.ip_range6,
        route=wanted.default_gateway,
        route6=wanted.default_gateway_v6 if wanted.ipv6 else "",
    )


def _bip(config: Config) -> str:
    """Its address, where the settings tell: that of a bridge somebody else made is on the bridge."""
    if config.bip or config.bridge or not config.default_bridge.fixed_cidr:
        return config.bip
    return str(first_host(IPv4Network(config.default_bridge.fixed_cidr)))


def _bip6(network: Network, config: Config) -> str:
    wanted = config.default_bridge
    if not wanted.ipv6:
        return ""
    if wanted.bip6:
        return wanted.bip6
    if wanted.fixed_cidr_v6:
        return str(first_host_6(IPv6Network(wanted.fixed_cidr_v6)))
    return network.gateway_interface6 if network.subnet6 else ""


def _word(truth: bool) -> str:
    return "true" if truth else "false"
