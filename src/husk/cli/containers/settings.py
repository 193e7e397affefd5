"""The docker client's own settings (`~/.docker/config.json`) for containers."""

from husk.cli.containers.keys import DEFAULT
from husk.client.address import config_directory, read_json


def detach_keys_or(given: str) -> str:
    """The keys that are given, those of the settings, or docker's."""
    return given or str(read_json(config_directory() / "config.json").get("detachKeys") or DEFAULT)
