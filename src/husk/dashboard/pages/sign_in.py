"""Signing in with a one-time link, and signing out."""

from typing import TYPE_CHECKING

from husk.api.http.response import Answer
from husk.dashboard.router import Kind, Route
from husk.dashboard.sessions import TooManyGuesses
from husk.dashboard.visit import HTML, Visit

if TYPE_CHECKING:
    from husk.dashboard.site import Site


def cookie_name(site: "Site") -> str:
    """Browsers do not keep the cookies of two ports apart. `__Host-` keeps them from being set by another host."""
    port = site.guard.port
    return f"__Host-husk-{port}" if site.secure else f"husk-{port}"


async def sign_in(visit: Visit) -> Answer:
    """A link that is opened. The answer is a page that leads on: a redirect would not take the new cookie along where
    the link was found on another site (SameSite=Strict)."""
    site = visit.site
    token = visit.query.get("token")
    if not token:
        return visit.page("sign_in.html", problem="")
    try:
        found = site.sessions.sign_in(token, visit.request.connection.peer or "")
    except TooManyGuesses:
        answer = visit.page("sign_in.html", 429, problem="Too many links were tried. Wait a minute, then try again.")
        answer.fields += b"Retry-After: 60\r\n"
        return answer
    if found is None:
        return visit.page("sign_in.html", 403, problem="This link was used already, or is too old.")
    secret, _ = found
    cookie = f"{cookie_name(site)}={secret}; Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if site.secure else "")
    return visit.document(site.renderer.page("signed_in.html", {}), HTML, Set_Cookie=cookie)


async def sign_out(visit: Visit) -> Answer:
    visit.site.sessions.sign_out(visit.session)
    return visit.document(
        visit.site.renderer.page("signed_out.html", {}),
        HTML,
        Set_Cookie=f"{cookie_name(visit.site)}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
        + ("; Secure" if visit.site.secure else ""),
        Clear_Site_Data='"cache", "storage"',
    )


ROUTES = (
    Route("GET", "/sign-in", sign_in, Kind.OPEN),
    Route("POST", "/sign-out", sign_out, Kind.CHANGE, of_session=True),
)
