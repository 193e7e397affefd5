"""A device of WireGuard, whoever drives it: the kernel (`module`), or a program (`program`)."""

from typing import Protocol

from husk.network.wireguard.parties import DeviceChange, DeviceState


class Device(Protocol):
    """All methods block: they are called from a thread."""

    def read(self) -> DeviceState:
        """Read what the device knows now."""
        ...

    def write(self, change: DeviceChange) -> None:
        """OSError with EADDRINUSE where its port is another's."""
        ...

    @property
    def pidfd(self) -> int:
        """Of the process that has to live for it; -1 where there is none."""
        ...

    def let_go(self) -> None:
        """Watch it no longer; it goes on."""
        ...

    def end(self) -> None:
        """Let nothing of it live on, but for the interface."""
        ...
