from types import SimpleNamespace
from typing import cast

from husk.dashboard.guard import Guard, Listening
from husk.dashboard.pages.sign_in import cookie_name
from husk.dashboard.site import Site


def site(tls: bool) -> Site:
    return cast(Site, SimpleNamespace(guard=Guard(Listening("127.0.0.1", 2380), tls), secure=tls))


def test_cookies_of_two_ports_are_kept_apart_and_those_of_tls_are_set_by_it_alone() -> None:
    assert cookie_name(site(tls=False)) == "husk-2380"
    assert cookie_name(site(tls=True)) == "__Secure-husk-2380"
