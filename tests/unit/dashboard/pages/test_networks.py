from tests.support.dashboard import Asker
from tests.support.fake_engine import FakeEngine


async def test_a_network_of_any_name_has_a_page_and_is_removed_there(asker: Asker, engine: FakeEngine) -> None:
    found = {"Id": "n" * 64, "Name": "a?b#c", "Driver": "bridge", "Labels": {}, "Containers": {}}
    engine.answers("GET", "/networks", [found])
    engine.answers("GET", "/networks/a?b#c", found)
    assert 'href="/networks/a%3Fb%23c"' in (await asker.get("/networks")).text
    assert 'href="/networks/a%3Fb%23c/remove"' in (await asker.get("/networks/a%3Fb%23c")).text
    assert 'action="/networks/a%3Fb%23c/remove"' in (await asker.get("/networks/a%3Fb%23c/remove")).text
