"""Values as bytes, also where memory is limited. Pure."""

from typing import Protocol


class Encoder(Protocol):
    """One of msgspec's."""

    def encode_into(self, value: object, buffer: bytearray, /) -> None: ...


def encoded(encoder: Encoder, value: object) -> bytes:
    """Encode a value; MemoryError where there is no room for it.

    msgspec's `encode` ends the process with SIGSEGV then (0.22): it goes on writing to what could not grow.
    """
    buffer = bytearray()
    encoder.encode_into(value, buffer)
    return bytes(buffer)
