"""The driver that sends a log away, and where to. Each driver is loaded with the first log that it sends."""

import importlib
from functools import partial

from husk.engine.logs.messages import LogReceiver
from husk.engine.model.container import Container
from husk.errors import InvalidParameter
from husk.runtime.logs.transport import Touch, is_there

# Each is a module of this package with a function `receiver`.
SENDING = ("fluentd", "gelf", "journald", "syslog")


def receiver(container: Container) -> LogReceiver | None:
    """None when its log stays here. Raises InvalidParameter with dockerd's words when its options make no sense."""
    config = container.host_config.log_config
    if config.type not in SENDING:
        return None
    driver = importlib.import_module(f"husk.engine.logs.{config.type}")
    made: LogReceiver = driver.receiver(container, config.config)
    return made


async def check(container: Container, touch: Touch) -> None:
    """Raise InvalidParameter where its options make no sense, or name a path of this host where nothing is."""
    made = receiver(container)
    if made is None or not made.required:
        return

    if not await touch(made.required, partial(is_there, made.required)):
        raise InvalidParameter(f"stat {made.required}: no such file or directory")
