"""The driver that sends a container's log away, and where to."""

from husk.engine.logs import fluentd, gelf, journald, syslog
from husk.engine.logs.receivers import Receiver
from husk.engine.model.container import Container

_DRIVERS = {
    "fluentd": fluentd.receiver,
    "gelf": gelf.receiver,
    "journald": journald.receiver,
    "syslog": syslog.receiver,
}


def receiver(container: Container) -> Receiver | None:
    """None when its log stays here. Raises InvalidParameter with dockerd's words when its options make no sense."""
    config = container.host_config.log_config
    make = _DRIVERS.get(config.type)
    return make(container, config.config) if make else None
