"""Containers that do not run, on networks and off them: what is noted for the next start."""

import json

from tests.integration.networks.conftest import Network, refused
from tests.support.client import Answer


def test_connecting_again_before_the_start_is_fine_and_changes_nothing(net: Network):
    net.create("mine", "--subnet", "10.226.0.0/24")
    net.daemon.docker("create", "--name", "sleeper", "--network", "mine", "--ip", "10.226.0.5", "busybox", "sleep", "9")
    assert _connect(net, "mine", "sleeper").status == 200
    assert _connect(net, "mine", "sleeper", {"IPAMConfig": {"IPv4Address": "10.226.0.7"}}).status == 200
    strange = _connect(net, "mine", "sleeper", {"IPAMConfig": {"IPv4Address": "10.220.0.7"}})
    assert strange.status == 400
    assert "no configured subnet or ip-range contain the IP address 10.220.0.7" in strange.message
    net.daemon.docker("start", "sleeper")
    assert net.address("sleeper", "mine") == "10.226.0.5"
    again = _connect(net, "mine", "sleeper")
    assert (again.status, again.message) == (403, "endpoint with name sleeper already exists in network mine")


def test_a_container_that_has_ended_is_connected_again_as_ansible_does(net: Network):
    net.create("mine")
    net.daemon.docker("run", "--name", "brief", "--network", "mine", "busybox", "true")
    assert _connect(net, "mine", "brief").status == 200
    assert list(json.loads(net.inspect("brief", "{{json .NetworkSettings.Networks}}"))) == ["mine"]


def test_a_network_that_is_gone_is_taken_off_a_container(net: Network):
    for options in ((), ("-f",)):
        net.create("passing")
        net.daemon.docker("create", "--name", "sleeper", "busybox", "sleep", "1000")
        net.daemon.docker("network", "connect", "passing", "sleeper")
        net.daemon.docker("network", "rm", "passing")
        assert "network passing not found" in refused(net, "start", "sleeper")
        net.daemon.docker("network", "disconnect", *options, "passing", "sleeper")
        net.daemon.docker("start", "sleeper")
        assert "network passing not found" in refused(net, "network", "disconnect", "-f", "passing", "sleeper")
        net.daemon.docker("rm", "-f", "sleeper")


def test_options_of_an_endpoint_that_no_driver_knows_are_kept_and_shown(net: Network):
    net.create("mine")
    endpoint = {"DriverOpts": {"com.example.colour": "red"}}
    body = {
        "Image": "busybox",
        "Cmd": ["sleep", "1000"],
        "HostConfig": {"NetworkMode": "mine"},
        "NetworkingConfig": {"EndpointsConfig": {"mine": endpoint}},
    }
    created = net.daemon.http("POST", "/containers/create?name=painted", body)
    assert created.status == 201, created.body
    net.daemon.docker("start", "painted")
    assert _connect(net, "bridge", "painted", endpoint).status == 200
    shown = json.loads(net.inspect("painted", "{{json .NetworkSettings.Networks}}"))
    assert [shown[name]["DriverOpts"] for name in ("mine", "bridge")] == [{"com.example.colour": "red"}] * 2


def test_a_network_may_have_any_name(net: Network):
    for name in ("a b", "a/b", "-x", "ä"):
        body = {"Name": name, "Labels": {"odd": "yes"}}
        assert net.daemon.http("POST", "/networks/create", body).status == 201
        net.run("on", "--network", name)
        assert net.inspect("on", "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}") == name
        net.daemon.docker("rm", "-f", "on")


def _connect(net: Network, name: str, container: str, endpoint: object = None) -> Answer:
    body = {"Container": container, **({"EndpointConfig": endpoint} if endpoint else {})}
    return net.daemon.http("POST", f"/networks/{name}/connect", body)
