import msgspec
import pytest

from husk.swarm.model.settings import SwarmSpec
from husk.swarm.model.swarm import KEY, Swarm
from husk.swarm.state.kinds import READERS, SwarmRecord, key_of, kind_of, only_tasks
from tests.unit.swarm.manager.test_planner import make_service, make_task


@pytest.mark.parametrize("record", [make_service(), make_task(1)])
def test_what_is_written_is_read_by_its_kind(record: SwarmRecord) -> None:
    assert READERS[kind_of(record)](msgspec.json.encode(record)) == record
    assert key_of(record) == record.id


def test_secrets_and_configs_say_themselves_what_they_are() -> None:
    assert {kind for kind in READERS if READERS[kind] is READERS["secret"]} == {"secret", "config"}


def test_there_is_one_swarm() -> None:
    spec = SwarmSpec()
    swarm = Swarm(id="s", version=0, created_at="", updated_at="", spec=spec, worker_token="w", manager_token="m")
    assert (kind_of(swarm), key_of(swarm)) == ("swarm", KEY)


def test_tasks_alone_may_be_lost() -> None:
    assert only_tasks((make_task(1), make_task(2)))
    assert not only_tasks((make_task(1), make_service()))
