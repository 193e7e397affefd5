"""The parts of the site, in the order of the bar at the top. A new part adds its line here."""

from typing import NamedTuple


class SitePart(NamedTuple):
    """`path` is its first page; pages below it belong to it."""

    path: str
    title: str


NAVIGATION: tuple[SitePart, ...] = (
    SitePart("/", "Overview"),
    SitePart("/containers", "Containers"),
    SitePart("/images", "Images"),
    SitePart("/volumes", "Volumes"),
    SitePart("/networks", "Networks"),
    SitePart("/services", "Services"),
    SitePart("/builds", "Builds"),
    SitePart("/disk", "Disk use"),
    SitePart("/events", "Events"),
    SitePart("/health", "Health"),
)
