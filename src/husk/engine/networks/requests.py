"""May a container be put on networks like this? Checks what a client asks for, in Docker's words. Pure."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address

from husk.engine.containers.model import Config, EndpointRequest, HostConfig
from husk.engine.networks import publishing
from husk.engine.networks.endpoints import parse_links, wanted_address
from husk.errors import InvalidParameter, NotImplementedYet

_MAC = re.compile(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}", re.ASCII)


def check(config: Config, host_config: HostConfig, endpoints: Mapping[str, EndpointRequest]) -> None:
    """Raise for the first thing that is wrong with a new container's networks and ports."""
    mode = host_config.network_mode
    publishing.check(config, host_config)
    _check_mac(config.mac_address)
    if mode.startswith("container:"):
        if not mode.removeprefix("container:"):
            raise InvalidParameter("invalid container format container:<name|id>")
        _check_sharing(config, host_config)
    for request in endpoints.values():
        check_endpoint(request)


def check_endpoint(request: EndpointRequest) -> None:
    _check_mac(request.mac_address)
    ipam = request.ipam_config or {}
    if address := wanted_address(request):
        try:
            IPv4Address(address)
        except ValueError:
            raise InvalidParameter(f"invalid endpoint settings:\ninvalid IPv4 address: {address[:40]}") from None
    if ipam.get("IPv6Address") or ipam.get("LinkLocalIPs"):
        raise NotImplementedYet("IPv6 and link-local addresses of endpoints are not implemented by Husk yet")
    if request.driver_opts:
        raise NotImplementedYet("DriverOpts of endpoints are not implemented by Husk yet")
    for alias in request.aliases or []:
        if not alias or re.search(r"\s", alias):
            raise InvalidParameter(f"invalid endpoint settings:\ninvalid alias: {alias!r}")
    parse_links(request.links)


def _check_sharing(config: Config, host_config: HostConfig) -> None:
    for option, given in (
        ("hostname", config.hostname),
        ("custom host-to-IP mapping", host_config.extra_hosts),
        ("dns", host_config.dns),
        ("mac-address", config.mac_address),
        ("link", host_config.links),
    ):
        if given:
            raise InvalidParameter(f"conflicting options: {option} and the network mode")


def _check_mac(text: str) -> None:
    if text and _MAC.fullmatch(text) is None:
        raise InvalidParameter(f"{text[:40]} is not a valid mac address")
