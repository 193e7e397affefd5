"""Execs on the wire: what `start` takes, what `create` and `inspect` answer."""

from msgspec import UNSET, Struct, UnsetType, field


class ExecStart(Struct, kw_only=True, rename="pascal"):
    detach: bool = False
    tty: bool = False
    console_size: list[int] | None = None


class ExecCreated(Struct, kw_only=True, rename="pascal"):
    id: str


class ProcessConfig(Struct, kw_only=True):
    tty: bool
    entrypoint: str
    arguments: list[str]
    privileged: bool
    user: str | UnsetType = UNSET


class ExecInspect(Struct, kw_only=True, rename="pascal"):
    """`DetachKeys` are bytes, in base64."""

    id: str = field(name="ID")
    running: bool
    exit_code: int | None
    process_config: ProcessConfig
    open_stdin: bool
    open_stderr: bool
    open_stdout: bool
    can_remove: bool
    container_id: str = field(name="ContainerID")
    detach_keys: bytes
    pid: int
