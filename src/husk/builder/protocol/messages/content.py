"""A store of blobs that a client serves: `containerd/api/services/content/v1/content.proto`."""

from typing import Annotated

from husk.rpc.protobuf import Enum, Message

ACTION_STAT, ACTION_WRITE, ACTION_COMMIT = range(3)


class Info(Message):
    digest: Annotated[str, 1] = ""
    size: Annotated[int, 2] = 0
    labels: Annotated[dict[str, str], 5] = {}


class InfoRequest(Message):
    digest: Annotated[str, 1] = ""


class InfoResponse(Message):
    info: Annotated[Info | None, 1] = None


class ReadContentRequest(Message):
    digest: Annotated[str, 1] = ""
    offset: Annotated[int, 2] = 0
    size: Annotated[int, 3] = 0  # 0: all


class ReadContentResponse(Message):
    offset: Annotated[int, 1] = 0
    data: Annotated[bytes, 2] = b""


class WriteContentRequest(Message):
    action: Annotated[Enum, 1] = ACTION_STAT
    ref: Annotated[str, 2] = ""
    total: Annotated[int, 3] = 0
    expected: Annotated[str, 4] = ""
    offset: Annotated[int, 5] = 0
    data: Annotated[bytes, 6] = b""
    labels: Annotated[dict[str, str], 7] = {}


class WriteContentResponse(Message):
    action: Annotated[Enum, 1] = ACTION_STAT
    offset: Annotated[int, 4] = 0
    total: Annotated[int, 5] = 0
    digest: Annotated[str, 6] = ""
