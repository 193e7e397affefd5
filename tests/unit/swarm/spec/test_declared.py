"""A service that is declared anew."""

import copy

import pytest

from husk.errors import InvalidParameter
from husk.swarm.model.services import EndpointSpec, PortConfig, Service
from husk.swarm.spec.declared import FIRST_PORT, LAST_PORT, changed_to, mode_of, published_ports
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import make_service


def wanting(service: Service, *ports: PortConfig) -> Service:
    service.spec.endpoint_spec = EndpointSpec(ports=list(ports))
    return service


def test_a_change_of_the_template_makes_another_version_and_a_rollback_goes_back() -> None:
    service = make_service(2)
    spec = copy.deepcopy(service.spec)
    spec.task_template.force_update += 1
    changed = changed_to(service, spec, [], False)
    assert changed.spec_version == service.spec_version + 1 and changed.previous_spec is service.spec
    assert changed.update_status is not None and changed.update_status.state == "updating"
    back = changed_to(changed, service.spec, [], True)
    assert back.spec_version == service.spec_version
    assert back.update_status is not None and back.update_status.state == "rollback_started"


def test_what_tasks_are_not_made_of_leaves_them() -> None:
    service = make_service(2)
    spec = copy.deepcopy(service.spec)
    spec.labels = {"a": "b"}
    changed = changed_to(service, spec, [], False)
    assert (changed.spec_version, changed.update_status) == (service.spec_version, None)


def test_a_port_left_open_is_the_first_free_one_and_stays() -> None:
    other = make_service(1, id="other")
    other = but(other, ports=[PortConfig(target_port=80, published_port=FIRST_PORT)])
    service = wanting(make_service(1), PortConfig(target_port=80))
    (chosen,) = published_ports(service, service.spec, [other, service])
    assert chosen.published_port == FIRST_PORT + 1
    service = but(service, ports=[chosen])
    assert published_ports(service, service.spec, [service]) == [chosen]
    udp = wanting(make_service(1, id="third"), PortConfig(target_port=80, protocol="udp"))
    assert published_ports(udp, udp.spec, [other])[0].published_port == FIRST_PORT


def test_a_port_that_another_has_is_refused_unless_it_is_the_hosts() -> None:
    other = make_service(1, id="other")
    other = but(other, ports=[PortConfig(target_port=80, published_port=8080)])
    service = wanting(make_service(1), PortConfig(target_port=80, published_port=8080))
    with pytest.raises(InvalidParameter, match="port '8080' is already in use by service"):
        published_ports(service, service.spec, [other])
    other.ports[0].publish_mode = "host"
    assert published_ports(service, service.spec, [other])[0].published_port == 8080


def test_all_are_taken() -> None:
    other = make_service(1, id="other")
    other = but(
        other, ports=[PortConfig(target_port=80, published_port=port) for port in range(FIRST_PORT, LAST_PORT + 1)]
    )
    service = wanting(make_service(1), PortConfig(target_port=80))
    with pytest.raises(InvalidParameter, match="no port is left"):
        published_ports(service, service.spec, [other])


def test_modes_have_names() -> None:
    assert mode_of(make_service(1).spec.mode) == "replicated"
