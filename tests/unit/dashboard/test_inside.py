import asyncio
from pathlib import Path

from husk.client.client import Client
from husk.config import TlsConfig
from husk.dashboard.inside import client_of, own_context
from husk.dashboard.server import serve
from husk.dashboard.site import DashboardSettings
from tests.support.certificates import Authority
from tests.support.dashboard import Browser
from tests.support.fake_engine import FakeEngine


async def test_a_client_speaks_with_the_edge_of_its_own_process(engine: FakeEngine) -> None:
    engine.answers("GET", "/version", {"Version": "1"})
    async with client_of(engine.server) as client:
        assert await client.version() == {"Version": "1"}


async def test_tls_has_the_daemons_certificate_and_asks_for_none(client: Client, tmp_path: Path) -> None:
    pair = Authority(tmp_path).issue("server", addresses=["127.0.0.1"])
    tls = own_context(TlsConfig(verify=True, ca=Path(pair.ca), cert=Path(pair.cert), key=Path(pair.key)))
    async with serve(client, DashboardSettings(address="127.0.0.1:0", tls=tls)) as dashboard:
        browser = Browser(dashboard.site.link(), pair.ca)
        assert browser.origin.startswith("https://127.0.0.1:")
        page = await asyncio.to_thread(browser.sign_in)
        assert page.status == 200
        cookie = page.headers["set-cookie"]
        assert cookie.startswith("__Secure-husk-") and cookie.endswith("; Secure")
        assert (await asyncio.to_thread(browser.get, "/containers")).status == 200
        insecure = {"origin": browser.origin.replace("https", "http")}
        assert (await asyncio.to_thread(browser.post, "/sign-out", None, **insecure)).status == 403
        assert (await asyncio.to_thread(browser.post, "/sign-out")).status == 200
