"""The place of the engine, as the line says it; the environment says the rest."""

from typing import NamedTuple


class HostChoice(NamedTuple):
    """The values of -H, --context and --debug."""

    host: str = ""
    context: str = ""
    debug: bool = False
