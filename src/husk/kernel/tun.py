"""Interfaces whose packets a program carries (TUN). They stay when the program ends, so that another can go on."""

import fcntl
import os
import struct

_DEVICE = "/dev/net/tun"
_SET_INTERFACE, _SET_PERSISTENT = 0x400454CA, 0x400454CB
_TUN, _WITHOUT_HEADER = 0x0001, 0x1000
_REQUEST = struct.Struct("16sH22x")


def make(name: str) -> None:
    """Make the interface, where it is not there. A program that opens it carries its packets, in the form it likes.

    FileNotFoundError where the kernel has no such interfaces, EBUSY while a program has it. Blocks.
    """
    descriptor = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, _SET_INTERFACE, _REQUEST.pack(name.encode(), _TUN | _WITHOUT_HEADER))
        fcntl.ioctl(descriptor, _SET_PERSISTENT, 1)
    finally:
        os.close(descriptor)
