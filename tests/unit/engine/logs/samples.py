"""A message and a container for tests of what receivers of logs are sent."""

from husk.engine.logs.messages import LogMessage
from husk.engine.logs.records import STDOUT, LogRecord
from husk.engine.model.container import Container
from husk.engine.model.container_config import ContainerConfig, HostConfig, LogConfig

TIME = 1_700_000_000_123_456_789
STAMP = b"2023-11-14T22:13:20.123456789Z"
HI = LogMessage(TIME, STDOUT, b"hi")


def container(driver: str = "json-file", **options: str) -> Container:
    return Container(
        id="0123456789abcdef" * 4,
        name="box",
        created="2023-11-14T22:13:20Z",
        created_ns=0,
        image_id="sha256:" + "f" * 64,
        config=ContainerConfig(image="busybox", labels={"a": "1", "b": "x y"}, env=["E=1", "F1=2", "G"]),
        host_config=HostConfig(
            log_config=LogConfig(type=driver, config={k.replace("_", "-"): v for k, v in options.items()})
        ),
        path="sh",
        args=["-c", "true"],
    )


def record(data: bytes, stream: int = STDOUT, partial: bool = False) -> LogRecord:
    return LogRecord(stream, STAMP, data, partial)
