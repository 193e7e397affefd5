"""The driver that sends a log away, and where to. Each driver is loaded with the first log that it sends."""

import importlib
from typing import TYPE_CHECKING

from husk.engine.model.container import Container

if TYPE_CHECKING:
    from husk.engine.logs.receivers import Receiver

# Each is a module of this package with a function `receiver`.
SENDING = ("fluentd", "gelf", "journald", "syslog")


def receiver(container: Container) -> "Receiver | None":
    """None when its log stays here. Raises InvalidParameter with dockerd's words when its options make no sense."""
    config = container.host_config.log_config
    if config.type not in SENDING:
        return None
    driver = importlib.import_module(f"husk.engine.logs.{config.type}")
    made: Receiver = driver.receiver(container, config.config)
    return made
