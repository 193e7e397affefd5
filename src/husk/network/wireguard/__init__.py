"""The driver of WireGuard between hosts, which encrypted overlay networks run over.

    parties     who is known by which key, and what has to be changed (pure)
    device      how a device of WireGuard is read and changed, whoever drives it
    program     the device of the program wireguard-go (`uapi` is what it is told)
    module      the kernel's own device (`messages` is what it is told)
    fence       the rules for it in the kernel (`rules` is their text)
    tunnel      `Tunnel` ties these together: this host's one device, its key, its rules

Each host has a link-local IPv6 address on its device, which follows from its node's id (`inner_address`). VXLAN
interfaces of encrypted networks have that address and that device: the kernel sends their packets there and nowhere
else, and takes none for them that came in otherwise. So nothing goes out readable when WireGuard is not there.
"""

from typing import TYPE_CHECKING

from husk.aio.once import late

if TYPE_CHECKING:
    from husk.network.wireguard import tunnel as tunnel
else:
    # A door: only encrypted networks that hosts share want WireGuard, with its ciphers.
    __getattr__ = late(__name__, "tunnel")
