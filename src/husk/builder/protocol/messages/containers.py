"""Processes that a frontend runs, of the service LLBBridge (`frontend/gateway/pb/gateway.proto`)."""

from typing import Annotated

from husk.builder.graph.ops import HostIP, Meta, Mount, Platform, SecretEnv, WorkerConstraints
from husk.builder.protocol.messages.common import Status
from husk.builder.protocol.messages.gateway import Empty
from husk.rpc.protobuf import Enum, Message, Uint32


class NewContainerRequest(Message):
    container_id: Annotated[str, 1] = ""
    mounts: Annotated[list[Mount], 2] = []
    network: Annotated[Enum, 3] = 0
    platform: Annotated[Platform | None, 4] = None
    constraints: Annotated[WorkerConstraints | None, 5] = None
    extra_hosts: Annotated[list[HostIP], 6] = []
    hostname: Annotated[str, 7] = ""


class ReleaseContainerRequest(Message):
    container_id: Annotated[str, 1] = ""


class InitMessage(Message):
    container_id: Annotated[str, 1] = ""
    meta: Annotated[Meta | None, 2] = None
    fds: Annotated[list[Uint32], 3] = []
    tty: Annotated[bool, 4] = False
    security: Annotated[Enum, 5] = 0
    secretenv: Annotated[list[SecretEnv], 6] = []


class FdMessage(Message):
    fd: Annotated[Uint32, 1] = 0
    eof: Annotated[bool, 2] = False
    data: Annotated[bytes, 3] = b""


class ResizeMessage(Message):
    rows: Annotated[Uint32, 1] = 0
    cols: Annotated[Uint32, 2] = 0


class ExitMessage(Message):
    code: Annotated[Uint32, 1] = 0
    error: Annotated[Status | None, 2] = None


class SignalMessage(Message):
    name: Annotated[str, 1] = ""


class ExecMessage(Message):
    process_id: Annotated[str, 1] = ""
    init: Annotated[InitMessage | None, 2] = None
    file: Annotated[FdMessage | None, 3] = None
    resize: Annotated[ResizeMessage | None, 4] = None
    started: Annotated[Empty | None, 5] = None
    exit: Annotated[ExitMessage | None, 6] = None
    done: Annotated[Empty | None, 7] = None
    signal: Annotated[SignalMessage | None, 8] = None
