"""Where the engine is, as the line says it; the environment says the rest."""

from typing import NamedTuple


class HostChoice(NamedTuple):
    """What was given with -H and --context."""

    host: str = ""
    context: str = ""
