"""A search over everything that has a page."""

from husk.api.http.response import Answer
from husk.dashboard.router import page
from husk.dashboard.visit import Visit


async def search(visit: Visit) -> Answer:
    """`?q=` says what is sought; the script of the bar asks for the list alone, while somebody writes."""
    text = visit.query.get("q")
    return visit.page("search.html", searched=text, hits=await visit.site.index.find(text))


ROUTES = (page("/search", search),)
