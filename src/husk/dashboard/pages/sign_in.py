"""The session itself: signing in with a one-time link, signing out, and the colours of its pages."""

from husk.api.http.response import Answer
from husk.dashboard.router import PageKind, PageRoute
from husk.dashboard.sessions import BrowserSession, TooManyGuesses
from husk.dashboard.site import Site
from husk.dashboard.visit import HTML, Visit, peer_of
from husk.errors import InvalidParameter

THEMES = ("system", "light", "dark")


def cookie_name(site: Site) -> str:
    """Browsers do not keep the cookies of two ports apart. `__Secure-` keeps one from being set without TLS; `__Host-`
    would want it sent to every path, and so to every port of this host, where containers are."""
    port = site.guard.port
    return f"__Secure-husk-{port}" if site.secure else f"husk-{port}"


def _cookie(site: Site, session: BrowserSession, value: str) -> str:
    cookie = f"{cookie_name(site)}={value}; Path={session.root}/; HttpOnly; SameSite=Strict"
    return cookie + ("; Secure" if site.secure else "")


async def sign_in(visit: Visit) -> Answer:
    """A link that is opened. The answer is a page that leads on: a redirect would not take the new cookie along where
    the link was found on another site (SameSite=Strict)."""
    site = visit.site
    token = visit.query.get("token")
    if not token:
        return visit.page("sign_in.html", problem="")
    try:
        found = site.sessions.sign_in(token, peer_of(visit.request))
    except TooManyGuesses:
        answer = visit.page("sign_in.html", 429, problem="Too many links were tried. Wait a minute, then try again.")
        answer.fields += b"Retry-After: 60\r\n"
        return answer
    if found is None:
        return visit.page("sign_in.html", 403, problem="This link was used already, or is too old.")
    secret, session = found
    shown = site.renderer.page("signed_in.html", {"root": session.root})
    return visit.document(shown, HTML, Set_Cookie=_cookie(site, session, secret))


async def sign_out(visit: Visit) -> Answer:
    visit.site.sessions.sign_out(visit.session)
    return visit.document(
        visit.site.renderer.page("signed_out.html", {}),
        HTML,
        Set_Cookie=_cookie(visit.site, visit.session, "") + "; Max-Age=0",
        Clear_Site_Data='"cache", "storage"',
    )


async def choose_theme(visit: Visit) -> Answer:
    """Light, dark, or as the system has it."""
    theme = visit.form.get("theme")
    if theme not in THEMES:
        raise InvalidParameter(f"no such colours: {theme!r}; there are light, dark and system")
    visit.session.choices["theme"] = theme
    return visit.back("/")


ROUTES = (
    PageRoute("GET", "/sign-in", sign_in, PageKind.OPEN),
    PageRoute("POST", "/theme", choose_theme, PageKind.CHANGE, of_session=True),
    PageRoute("POST", "/sign-out", sign_out, PageKind.CHANGE, of_session=True),
)
