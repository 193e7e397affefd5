"""Settings that a network takes from one that is only a configuration: `--config-only` and `--config-from`. Pure.

Docker has these so that each host of a swarm can give a network of one name settings of its own: the configuration says
which subnet, driver options and labels, the network made from it says the driver and who may use it.
"""

from collections.abc import Iterable

import msgspec

from husk.engine.model.network import ConfigSource, IpamConfig, IpamRequest, Network, NetworkRequest
from husk.errors import Forbidden, NotFound


def check(request: NetworkRequest) -> None:
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


def users(network: Network, existing: Iterable[Network]) -> list[Network]:
    """The networks that were made from a configuration."""
    return [other for other in existing if network.config_only and other.config_from == network.name]
