from unittest.mock import Mock

from husk.engine.model.events import Events
from husk.storage.state.store import StateStore
from husk.swarm.network.sharing import NetworkSharing
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import News


def test_it_begins_once_and_ends(state: StateStore) -> None:
    endpoints, networks, agent, events = Mock(shared=None, feed=None), Mock(), Mock(), Events()
    records = SwarmRecords(SqliteStore(state))
    sharing = NetworkSharing(records, Mock(), networks, endpoints, agent.wake, events)
    sharing.end()
    sharing.begin()
    shared = endpoints.shared
    assert shared is not None and endpoints.feed is not None and len(records.followed) == 1
    networks.share.assert_called_with(shared)
    sharing.begin()
    assert endpoints.shared is shared
    before = agent.wake.call_count
    events.publish("network", "disconnect", "lan", {})
    assert agent.wake.call_count == before + 1
    sharing.end()
    assert endpoints.shared is None and endpoints.feed is None and not len(records.followed)
    networks.share.assert_called_with(None)
    sharing.begin()
    events.publish("network", "disconnect", "lan", {})
    assert agent.wake.call_count == before + 3


def test_what_is_being_taken_while_the_records_move_stays_known(state: StateStore) -> None:
    endpoints = Mock(shared=None, feed=None)
    sharing = NetworkSharing(SwarmRecords(SqliteStore(state)), Mock(), Mock(), endpoints, Mock(), Events())
    sharing.switched(News(1, True, ()))
    former = endpoints.shared
    former.underway.add("lan/10.0.0.2")
    sharing.switched(News(2, True, ()))
    assert endpoints.shared is not former and endpoints.shared.underway == {"lan/10.0.0.2"}
    former.underway.clear()
    assert not endpoints.shared.underway
