"""Holders of addresses of a network that hosts share."""

from husk.engine.model.container import TASK_LABEL, Endpoint
from husk.engine.model.container_config import EndpointRequest
from husk.engine.networks.sharing import Place, occupant
from tests.unit.engine.records import container


def test_a_container_is_known_by_its_names_and_its_task() -> None:
    record = container("web.1")
    record.config.labels[TASK_LABEL] = "t"
    endpoint = Endpoint(network_name="lan", network_id="id", request=EndpointRequest(aliases=["tasks.web"]))
    who = occupant(record, endpoint)
    assert (who.kind, who.container, who.task) == ("endpoint", record.id, "t")
    assert {"web.1", "tasks.web"} <= set(who.names)


def test_an_address_is_there_once() -> None:
    places = [Place(network="n", address="10.0.0.2", node=node, kind="host") for node in ("a", "b")]
    assert {place.key for place in places} == {"n/10.0.0.2"}
