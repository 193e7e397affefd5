import pytest

from husk.engine.model.container import Draft, Endpoint
from husk.engine.model.container_config import EndpointRequest, HostConfig
from husk.engine.model.network import Network
from husk.engine.networks import live as module
from husk.engine.networks.live import LiveNetwork, Roster
from husk.errors import InvalidParameter, NotFound
from tests.unit.engine.records import container


@pytest.fixture
def roster() -> Roster:
    found = Roster()
    for name, id in (("lan", "abc1"), ("abc1x", "abc2"), ("host", "ffff")):
        found.by_name[name] = LiveNetwork(Network(id=id, name=name, driver="host", created=""))
    return found


def test_a_network_is_found_by_id_name_or_a_leading_part_of_its_id(roster: Roster) -> None:
    assert [roster.find(reference).record.name for reference in ("abc1", "abc1x", "f")] == ["lan", "abc1x", "host"]


def test_a_leading_part_that_two_ids_have_is_no_name(roster: Roster) -> None:
    with pytest.raises(InvalidParameter, match=r"network abc is ambiguous \(2 matches"):
        roster.find("abc")


@pytest.mark.parametrize("reference", ["", "wan"])
def test_who_names_none_of_them_is_told(roster: Roster, reference: str) -> None:
    with pytest.raises(NotFound, match=f"network {reference} not found"):
        roster.find(reference)


def test_a_network_without_a_bridge_has_no_driver(roster: Roster) -> None:
    live = roster.find("host")
    assert not live.bridged
    with pytest.raises(TypeError, match="host has no bridge"):
        assert live.driver


def test_members_that_link_to_others_are_known_by_themselves(roster: Roster) -> None:
    live = roster.find("lan")
    plain, linking = container("db"), container("web", host_config=HostConfig(links=["db:data"]))
    for record in (plain, linking):
        live.enter(Draft(record))
    assert (list(live.members), list(live.linking)) == ([plain.id, linking.id], [linking.id])
    assert [live.exit(record.id) for record in (linking, linking, plain)] == [True, False, True]
    assert live.members == live.linking == {}


def test_a_name_is_found_without_a_look_at_others(roster: Roster, monkeypatch: pytest.MonkeyPatch) -> None:
    live = roster.find("lan")
    first, second = Draft(container("Web")), Draft(container("db"))
    for draft, aliases in ((first, ["www", "WWW"]), (second, ["www"])):
        request = EndpointRequest(aliases=aliases)
        draft.put(Endpoint(network_name="lan", network_id="abc1", request=request))
    live.enter(first)
    assert (list(live.called("web")), list(live.called("www")), list(live.called("db"))) == (
        [first.record],
        [first.record],
        [],
    )
    live.enter(second)
    assert list(live.called("www")) == [first.record, second.record] and list(live.called("db")) == [second.record]
    second.change(name="Store")
    live.renamed(second)
    assert (list(live.called("db")), list(live.called("store"))) == ([], [second.record])
    monkeypatch.setattr(module, "dns_names", None)  # nobody's names are read for a question
    assert list(live.called("nobody")) == []
    live.exit(first.id)
    assert (list(live.called("web")), list(live.called("www"))) == ([], [second.record])
    live.renamed(first)  # it is none any more
    live.exit(second.id)
    assert not live._called and not live._names
