"""The place of the engine, as the line says it; the environment says the rest."""

from typing import NamedTuple


class HostChoice(NamedTuple):
    """The values of -H and --context."""

    host: str = ""
    context: str = ""
