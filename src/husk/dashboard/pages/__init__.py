"""The pages of the site: each module has a table `ROUTES` of its paths, and all of them are put together here."""

from husk.dashboard.pages import (
    builds,
    container,
    containers,
    files,
    home,
    images,
    logs,
    networks,
    projects,
    run,
    search,
    selection,
    sign_in,
    swarm,
    system,
    terminal,
    volumes,
)
from husk.dashboard.router import PageRoute

ROUTES: tuple[PageRoute, ...] = (
    *sign_in.ROUTES,
    *home.ROUTES,
    *containers.ROUTES,
    *projects.ROUTES,
    *run.ROUTES,
    *selection.ROUTES,
    *search.ROUTES,
    *images.ROUTES,
    *volumes.ROUTES,
    *networks.ROUTES,
    *swarm.ROUTES,
    *builds.ROUTES,
    *system.ROUTES,
    *container.ROUTES,
    *files.ROUTES,
    *logs.ROUTES,
    *terminal.ROUTES,
)
