"""The pages of the site: each module has a table `ROUTES` of its paths, and all of them are put together here."""

from husk.dashboard.pages import containers, home, images, networks, sign_in, swarm, system, volumes
from husk.dashboard.router import Route

ROUTES: tuple[Route, ...] = (
    *sign_in.ROUTES,
    *home.ROUTES,
    *containers.ROUTES,
    *images.ROUTES,
    *volumes.ROUTES,
    *networks.ROUTES,
    *swarm.ROUTES,
    *system.ROUTES,
)
