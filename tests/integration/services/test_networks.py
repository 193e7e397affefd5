"""The networks of a swarm: ingress, and who may be on which."""

from typing import Any

from tests.integration.services.test_endpoints import SERVER, ask
from tests.support.daemon import Daemon
from tests.support.free_ports import free_port
from tests.support.swarm import Swarm
from tests.support.waiting import until


def shown(daemon: Daemon, name: str) -> dict[str, Any]:
    return daemon.http("GET", f"/networks/{name}").json()


def networks_of(daemon: Daemon, container: str) -> set[str]:
    return set(daemon.http("GET", f"/containers/{container}/json").json()["NetworkSettings"]["Networks"])


def ingress_address(daemon: Daemon, container: str) -> str:
    return str(shown(daemon, "ingress")["Containers"][container]["IPv4Address"])


def test_a_swarm_comes_with_an_ingress_network(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    assert daemon.http("GET", "/networks/ingress").status == 404
    daemon.docker("swarm", "init", "--default-addr-pool", "10.210.0.0/20", "--default-addr-pool-mask-length", "26")
    found = shown(daemon, "ingress")
    assert (found["Driver"], found["Scope"], found["Ingress"], found["Attachable"]) == ("overlay", "swarm", True, False)
    assert found["IPAM"]["Config"][0]["Subnet"].startswith("10.210.") and "/26" in found["IPAM"]["Config"][0]["Subnet"]
    assert "ingress" in daemon.docker("network", "ls", "--filter", "scope=swarm").stdout
    daemon.docker("network", "create", "-d", "overlay", "mesh")
    assert "/26" in shown(daemon, "mesh")["IPAM"]["Config"][0]["Subnet"], "the swarm's pool serves all its networks"
    daemon.restart()
    assert shown(daemon, "ingress")["Id"] == found["Id"]
    daemon.docker("swarm", "leave", "--force")
    assert daemon.http("GET", "/networks/ingress").status == 404
    for size in ("19", "31"):
        refused = daemon.docker(
            "swarm", "init", "--default-addr-pool", "10.210.0.0/20", "--default-addr-pool-mask-length", size,
            check=False,
        )  # fmt: skip
        assert "invalid subnet size" in refused.stderr


def test_it_is_removed_and_made_as_docker_allows(fresh_swarm: Swarm) -> None:
    swarm, daemon = fresh_swarm, fresh_swarm.daemon
    port = free_port()
    again = daemon.http("POST", "/networks/create", {"Name": "second", "Driver": "overlay", "Ingress": True})
    assert again.status == 409 and "is already present" in again.message
    local = daemon.http("POST", "/networks/create", {"Name": "second", "Driver": "bridge", "Ingress": True})
    assert local.status == 403
    swarm.create("web", "--publish", f"{port}:80", args=SERVER)
    [container] = swarm.settles("web", 1)
    ingress = shown(daemon, "ingress")
    assert networks_of(daemon, container) == {"ingress"}
    assert [v["NetworkID"] for v in swarm.inspect("web")["Endpoint"]["VirtualIPs"]] == [ingress["Id"]]
    [attachment] = swarm.tasks("web")[0]["NetworksAttachments"]
    assert (attachment["Network"]["ID"], attachment["Network"]["Spec"]["Ingress"]) == (ingress["Id"], True)
    assert attachment["Addresses"] == [ingress_address(daemon, container)]
    needed = daemon.http("DELETE", "/networks/ingress")
    assert needed.status == 400 and "ingress network cannot be removed because service" in needed.message
    swarm.update("web", "--publish-rm", "80")
    assert daemon.http("DELETE", "/networks/ingress").status == 204
    refused = daemon.docker("service", "update", "-d", "--publish-add", f"{port}:80", "web", check=False)
    assert "service needs ingress network, but no ingress network is present" in refused.stderr
    daemon.restart()
    assert daemon.http("GET", "/networks/ingress").status == 404, "it is not made behind its owner's back"
    unattachable = {"Name": "i", "Driver": "overlay", "Ingress": True, "Attachable": True}
    assert daemon.http("POST", "/networks/create", unattachable).status == 400
    daemon.docker("network", "create", "-d", "overlay", "--ingress", "--subnet", "10.210.77.0/24", "entrance")
    swarm.update("web", "--publish-add", f"{port}:80")
    until(lambda: ask(port), "it is reached through the new one")
    assert networks_of(daemon, swarm.settles("web", 1)[0]) == {"entrance"}


def test_a_service_on_internal_networks_is_reached_through_ingress(swarm: Swarm) -> None:
    daemon = swarm.daemon
    port = free_port()
    daemon.docker("network", "create", "-d", "overlay", "--internal", "inner")
    swarm.create("web", "--network", "inner", "--publish", f"{port}:80", args=SERVER)
    [container] = swarm.settles("web", 1)
    assert networks_of(daemon, container) == {"inner", "ingress"}
    assert until(lambda: ask(port), "it answers") == container[:12]
    swarm.update("web", "--publish-rm", "80")
    until(lambda: swarm.settled("web", 1) not in ([], [container]), "it is replaced")
    assert networks_of(daemon, swarm.settles("web", 1)[0]) == {"inner"}
    swarm.remove_all()
    daemon.docker("network", "rm", "inner")


def test_only_networks_for_all_take_plain_containers(swarm: Swarm) -> None:
    daemon = swarm.daemon
    daemon.docker("network", "create", "-d", "overlay", "closed")
    daemon.docker("network", "create", "-d", "overlay", "--attachable", "open")
    daemon.docker("run", "--rm", "--network", "open", "busybox", "true")
    for network in ("closed", "ingress"):
        refused = daemon.docker("run", "--name", f"on-{network}", "--network", network, "busybox", "true", check=False)
        assert refused.returncode == 125
        said = f"Could not attach to network {network}: rpc error: code = PermissionDenied desc = network {network}"
        assert f"{said} not manually attachable" in refused.stderr
        assert daemon.http("GET", f"/containers/on-{network}/json").json()["State"]["Status"] == "created"
    running = daemon.docker("run", "-d", "busybox", "sleep", "600").stdout.strip()
    late = daemon.docker("network", "connect", "closed", running, check=False)
    assert "not manually attachable" in late.stderr
    assert networks_of(daemon, running) == {"bridge"}
    assert not shown(daemon, "closed")["Containers"]
    swarm.create("web", "--network", "closed")
    swarm.settles("web", 1)
    swarm.remove_all()
    daemon.remove_containers()
    daemon.docker("network", "rm", "closed", "open")


def test_a_service_is_on_networks_of_the_swarm(swarm: Swarm) -> None:
    daemon = swarm.daemon
    daemon.docker("network", "create", "here")
    spec = {"Name": "web", "TaskTemplate": {"ContainerSpec": {"Image": "busybox"}}}
    for network, status, words in (
        ("here", 403, "The network here cannot be used with services"),
        ("ingress", 400, "Service cannot be explicitly attached to the ingress network"),
        ("nowhere", 404, "nowhere not found"),
    ):
        template = {**spec["TaskTemplate"], "Networks": [{"Target": network}]}  # type: ignore[dict-item]
        refused = daemon.http("POST", "/services/create", {**spec, "TaskTemplate": template})
        assert refused.status == status and words in refused.message
    assert daemon.http("GET", "/services").json() == []
    daemon.docker("network", "rm", "here")


def test_a_network_that_a_service_needs_stays(swarm: Swarm) -> None:
    daemon = swarm.daemon
    daemon.docker("network", "create", "-d", "overlay", "mesh")
    swarm.create("idle", "--replicas", "0", "--network", "mesh", "--endpoint-mode", "dnsrr")
    refused = daemon.http("DELETE", "/networks/mesh")
    assert refused.status == 400 and "is in use by service" in refused.message
    daemon.docker("network", "prune", "-f")
    daemon.docker("system", "prune", "-f")
    assert shown(daemon, "mesh")["Name"] == "mesh" and shown(daemon, "ingress")["Ingress"]
    swarm.remove_all()
    assert "mesh" in daemon.docker("network", "prune", "-f").stdout


def test_a_service_on_the_networks_of_its_node(swarm: Swarm) -> None:
    daemon = swarm.daemon
    for network in ("host", "bridge"):
        swarm.create(f"on-{network}", "--network", network)
        [container] = swarm.settles(f"on-{network}", 1)
        assert networks_of(daemon, container) == {network}
    assert daemon.http("GET", "/networks/host?scope=swarm").json()["Scope"] == "swarm"
    assert daemon.http("GET", "/networks/host").json()["Scope"] == "local"
    assert daemon.http("GET", "/networks/none?scope=swarm").status == 404
