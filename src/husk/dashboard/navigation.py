"""The parts of the site, in the order of the bar at the top. A new part adds its line here."""

from typing import NamedTuple


class Part(NamedTuple):
    """`path` is its first page; pages below it belong to it."""

    path: str
    title: str


NAVIGATION: tuple[Part, ...] = (
    Part("/containers", "Containers"),
    Part("/images", "Images"),
    Part("/volumes", "Volumes"),
    Part("/networks", "Networks"),
    Part("/services", "Services"),
    Part("/builds", "Builds"),
    Part("/disk", "Disk use"),
    Part("/events", "Events"),
    Part("/health", "Health"),
)
