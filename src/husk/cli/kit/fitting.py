"""Columns of a table in the room that a terminal has. Pure.

Nothing is broken into two lines. What can be told from its begin is cut first, with an ellipsis; then columns that can
be asked for otherwise stay away, the least important first. Names and ids are whole, whatever the width.
"""

from collections.abc import Sequence
from typing import NamedTuple

# Columns of which the begin is of use, and the least of it.
_CUT = {
    "LABELS": 10,
    "MOUNTS": 10,
    "COMMENT": 10,
    "COMMAND": 12,
    "CREATED BY": 20,
    "DESCRIPTION": 20,
    "ERROR": 16,
    "PORTS": 14,
    "DOCKER ENDPOINT": 20,
}
# Those that stay away where there is no room, the first first.
_AWAY = (
    *("LABELS", "MOUNTS", "COMMENT", "DIGEST", "CREATED AT", "UPDATED", "CREATED", "COMMAND", "BLOCK I/O", "NET I/O"),
    *("ENGINE VERSION", "DESCRIPTION", "DESIRED STATE", "PORTS", "SCOPE", "DRIVER", "LOCAL VOLUMES", "SIZE"),
)
# What is cut where nothing else helps: its begin says where it is from.
_LAST = {"IMAGE": 16, "REPOSITORY": 16, "MEM USAGE / LIMIT": 9}


class FittedColumn(NamedTuple):
    """A column that is shown: its place among all, and its width."""

    place: int
    width: int


def fitted(titles: Sequence[str], widths: Sequence[int], room: int, between: int) -> list[FittedColumn]:
    """Return the columns to show of those with these titles and the widths of their widest cells."""
    shown = [FittedColumn(place, width) for place, width in enumerate(widths)]

    def over() -> int:
        return sum(width for _, width in shown) + between * (len(shown) - 1) - room

    def cut(least: dict[str, int]) -> None:
        for title, smallest in least.items():
            for number, (place, width) in enumerate(shown):
                if titles[place] == title and over() > 0:
                    shown[number] = FittedColumn(place, max(width - over(), min(smallest, width)))

    cut(_CUT)
    for title in _AWAY:
        if over() <= 0:
            break
        shown = [each for each in shown if titles[each.place] != title or len(shown) == 1]
        # What was cut for a column that stays away now has its room back.
        shown = [FittedColumn(place, widths[place]) for place, _ in shown]
        cut(_CUT)
    cut(_LAST)
    return shown
