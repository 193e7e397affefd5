"""The first page, and the stream that keeps every open page up to date."""

from husk.api.http.response import Answer
from husk.dashboard.router import page, stream
from husk.dashboard.visit import Visit


async def home(visit: Visit) -> Answer:
    return visit.redirect("/containers")


async def live(visit: Visit) -> Answer:
    """What happens in the engine, for the script that fetches regions again."""
    return await visit.tell(visit.site.live.messages())


ROUTES = (
    page("/", home),
    stream("/live", live),
)
