"""Messages of gRPC in the bytes of a stream: each has a byte that says whether it is compressed, and its length."""

from struct import Struct as Layout

from husk.rpc.grpc.status import RESOURCE_EXHAUSTED, UNIMPLEMENTED, GrpcError

_HEAD = Layout(">BI")
HEAD_SIZE = _HEAD.size

# The largest message that is taken, as BuildKit has it.
LARGEST = 16 << 20
# Pieces of an unfinished message that are smaller are put together: each costs some bytes beside its own.
_SMALL = 1 << 12


def framed(message: bytes) -> bytes:
    return _HEAD.pack(0, len(message)) + message


class MessageReader:
    """Bytes in any pieces → messages."""

    def __init__(self, largest: int = LARGEST) -> None:
        self._largest = largest
        self._pieces: list[bytes] = []
        self._size = 0
        # How many bytes there have to be before looking at them again is worth it.
        self._wanted = HEAD_SIZE

    @property
    def waiting(self) -> int:
        """The number of bytes of an unfinished message that are kept."""
        return self._size

    def drop(self) -> None:
        """Forget the unfinished message, and the place in it: nothing can be read any more."""
        self._pieces.clear()
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """GrpcError for a message that is too large, or compressed."""
        self._size += len(data)
        if self._pieces or self._size < self._wanted:
            if self._pieces and len(self._pieces[-1]) + len(data) <= _SMALL:
                self._pieces[-1] += data
            else:
                self._pieces.append(data)
            if self._size < self._wanted:
                return []
            data = b"".join(self._pieces)
            self._pieces.clear()
        messages: list[bytes] = []
        position, size = 0, self._size
        self._wanted = HEAD_SIZE
        while size - position >= HEAD_SIZE:
            compressed, length = _HEAD.unpack_from(data, position)
            if compressed:
                raise GrpcError(UNIMPLEMENTED, "compressed messages are not taken")
            if length > self._largest:
                raise GrpcError(RESOURCE_EXHAUSTED, f"a message of {length} bytes: {self._largest} is the most")
            end = position + HEAD_SIZE + length
            if end > size:
                self._wanted = HEAD_SIZE + length
                break
            messages.append(data[position + HEAD_SIZE : end])
            position = end
        self._size = size - position
        if self._size:
            self._pieces.append(data[position:])
        return messages
