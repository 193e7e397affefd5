"""Messages that are not BuildKit's own: times, and errors with details."""

from typing import Annotated

from husk.rpc.protobuf import Int32, Message


class Timestamp(Message):
    seconds: Annotated[int, 1] = 0
    nanos: Annotated[Int32, 2] = 0


class Any(Message):
    """A message of any type, with its type's name behind the last slash of `type_url`."""

    type_url: Annotated[str, 1] = ""
    value: Annotated[bytes, 2] = b""


class Status(Message):
    """google.rpc.Status: how a call ended."""

    code: Annotated[Int32, 1] = 0
    message: Annotated[str, 2] = ""
    details: Annotated[list[Any], 3] = []


class HealthCheckRequest(Message):
    service: Annotated[str, 1] = ""


class HealthCheckResponse(Message):
    status: Annotated[Int32, 1] = 0


def timestamp(nanoseconds: int) -> Timestamp | None:
    """A time of ours; 0 is none."""
    return Timestamp(nanoseconds // 10**9, nanoseconds % 10**9) if nanoseconds else None
