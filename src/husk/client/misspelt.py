"""Keywords that nobody knows, and those that were meant. Pure."""

import difflib
from collections.abc import Collection, Iterable

from husk.errors import InvalidParameter


def require_known(given: Iterable[str], known: Collection[str], whose: str, listed: str) -> None:
    """Raise InvalidParameter for keywords that are not known, with those that were meant, and where all are listed."""
    unknown = sorted(set(given) - set(known))
    if not unknown:
        return
    said = []
    for name in unknown:
        near = difflib.get_close_matches(name, known, 1)
        said.append(f"{name} (did you mean {near[0]}?)" if near else name)
    raise InvalidParameter(f"{whose} knows no {', '.join(said)}. {listed} lists what it knows")
