"""Links, Docker's old way of names: hosts and variables on the default bridge, names on other networks."""

import json

from tests.integration.networks.conftest import refused
from tests.integration.networks.test_names import lookup


def test_a_linked_container_is_in_hosts_and_environment(net):
    net.run("db-1", "-e", "SECRET=x y", "--expose", "5432", "--expose", "90/udp")
    net.run("web", "--link", "db-1:the-db", "--link", "db-1")
    address, identity = net.address("db-1"), net.inspect("db-1", "{{.Id}}")
    hosts = net.daemon.docker("exec", "web", "cat", "/etc/hosts").stdout
    assert f"{address}\tthe-db {identity[:12]} db-1\n" in hosts
    assert f"{address}\tdb-1 {identity[:12]}\n" in hosts
    done = net.daemon.docker("run", "--rm", "--name", "shown", "--link", "db-1:the-db", "busybox", "env").stdout
    found = {line for line in done.splitlines() if line.startswith("THE_DB_")}
    assert found == {
        f"THE_DB_PORT=udp://{address}:90",
        f"THE_DB_PORT_5432_TCP=tcp://{address}:5432",
        f"THE_DB_PORT_5432_TCP_ADDR={address}",
        "THE_DB_PORT_5432_TCP_PORT=5432",
        "THE_DB_PORT_5432_TCP_PROTO=tcp",
        f"THE_DB_PORT_90_UDP=udp://{address}:90",
        f"THE_DB_PORT_90_UDP_ADDR={address}",
        "THE_DB_PORT_90_UDP_PORT=90",
        "THE_DB_PORT_90_UDP_PROTO=udp",
        "THE_DB_NAME=/shown/the-db",
        "THE_DB_ENV_SECRET=x y",
    }
    shown = json.loads(net.inspect("web", "{{json .HostConfig.Links}}"))
    assert sorted(shown) == ["/db-1:/web/db-1", "/db-1:/web/the-db"]


def test_hosts_follow_a_linked_container_to_its_next_address(net):
    net.run("db")
    net.run("web", "--link", "db:alias")
    net.daemon.docker("stop", "-t", "0", "db")
    net.run("taker")
    net.daemon.docker("start", "db")
    hosts = net.daemon.docker("exec", "web", "cat", "/etc/hosts").stdout
    linked = [line.split()[0] for line in hosts.splitlines() if " db" in line]
    assert linked == [net.address("db")]


def test_a_link_needs_a_container_that_runs(net):
    done = net.daemon.docker("create", "--link", "nobody", "busybox", check=False)
    assert "could not get container for nobody: No such container: nobody" in done.stderr
    net.daemon.docker("create", "--name", "db", "busybox", "true")
    net.daemon.docker("create", "--name", "web", "--link", "db", "busybox", "true")
    done = net.daemon.docker("start", "web", check=False)
    assert "Cannot link to a non running container: /db AS /web/db" in done.stderr
    done = net.daemon.docker("create", "--network", "host", "--link", "db", "busybox", check=False)
    assert "host type networking can't be used with links" in done.stderr


def test_a_link_is_one_more_name_of_a_container(net):
    net.run("mysql")
    net.run("app", "--link", "mysql:db", "--link", "mysql")
    assert _names(net, "mysql") == ["/app/db", "/app/mysql", "/mysql"]
    assert net.daemon.docker("ps", "--no-trunc", "--filter", "name=mysql", "--format", "{{.Names}}").stdout == (
        "app/db,app/mysql,mysql\n"
    )
    assert net.inspect("app/mysql", "{{.Name}}") == "/mysql"
    assert net.daemon.docker("exec", "/app/db", "echo", "found").stdout == "found\n"
    assert net.daemon.http("GET", "/containers/app/nothing/json").status == 404
    net.daemon.docker("rename", "mysql", "sql")
    net.daemon.docker("rename", "app", "shop")
    assert _names(net, "sql") == ["/shop/db", "/shop/mysql", "/sql"]
    assert json.loads(net.inspect("shop", "{{json .HostConfig.Links}}")) == ["/sql:/shop/db", "/sql:/shop/mysql"]
    net.daemon.docker("restart", "-t", "0", "shop")
    net.daemon.docker("rm", "--link", "shop/db")
    assert _names(net, "sql") == ["/shop/mysql", "/sql"]
    net.daemon.docker("rm", "-f", "shop/mysql")
    assert "No such container" in refused(net, "rm", "sql")


def test_a_link_to_a_container_off_the_default_network_is_refused(net):
    net.create("elsewhere")
    far = net.run("far", "--network", "elsewhere")
    net.daemon.docker("create", "--name", "near", "--link", "far:it", "busybox", "true")
    assert f"container {far} not attached to default bridge network" in refused(net, "start", "near")


def _names(net, name):
    (found,) = net.daemon.http("GET", f'/containers/json?filters={{"name":["^{name}$"]}}').json()
    return found["Names"]


def test_a_link_can_be_forgotten(net):
    net.run("db")
    net.run("web", "--link", "db:alias")
    net.daemon.docker("rm", "--link", "/web/alias")
    assert net.inspect("web", "{{json .HostConfig.Links}}") == "null"
    assert "No such link" in net.daemon.docker("rm", "--link", "/web/alias", check=False).stderr


def test_on_a_user_network_a_link_is_a_name(net):
    net.create("own")
    net.run("db", "--network", "own")
    body = {"Image": "busybox", "Cmd": ["sleep", "99"], "HostConfig": {"NetworkMode": "own", "Links": ["db:alias"]}}
    assert net.daemon.http("POST", "/containers/create?name=web", body).status == 201
    net.daemon.docker("start", "web")
    assert lookup(net, "web", "alias") == [net.address("db", "own")]


def test_an_endpoint_chooses_the_name_and_settings_of_its_interface(net):
    net.create("own")
    prefix = "com.docker.network.endpoint"
    options = {f"{prefix}.ifname": "lan0", f"{prefix}.sysctls": "net.ipv4.conf.IFNAME.log_martians=1"}
    body = {
        "Image": "busybox",
        "Cmd": ["sleep", "99"],
        "HostConfig": {"NetworkMode": "own"},
        "NetworkingConfig": {"EndpointsConfig": {"own": {"DriverOpts": options}}},
    }
    assert net.daemon.http("POST", "/containers/create?name=web", body).status == 201
    net.daemon.docker("start", "web")
    read = net.daemon.docker("exec", "web", "cat", "/proc/sys/net/ipv4/conf/lan0/log_martians")
    assert read.stdout == "1\n"
    assert json.loads(net.inspect("web", "{{json .NetworkSettings.Networks.own.DriverOpts}}")) == options


def test_ports_with_the_hosts_network_are_discarded_with_a_warning(net):
    body = {
        "Image": "busybox",
        "Cmd": ["true"],
        "HostConfig": {"NetworkMode": "host", "PortBindings": {"80/tcp": [{"HostPort": "80"}]}},
    }
    answer = net.daemon.http("POST", "/containers/create", body).json()
    assert "Published ports are discarded when using host network mode" in answer["Warnings"]


def test_a_link_to_a_guest_is_one_to_whose_network_it_is_in(net):
    """As dockerd: whoever has the network is looked at, also for what is passed on and when it comes back."""
    net.run("owner", "-e", "SECRET=owners", "--expose", "5432")
    net.run("guest", "-e", "SECRET=guests", "--network", "container:owner")
    net.run("web", "--link", "guest:g")
    owner = net.inspect("owner", "{{.Id}}")[:12]
    assert f"{net.address('owner')}\tg {owner} owner\n" in net.daemon.docker("exec", "web", "cat", "/etc/hosts").stdout
    done = net.daemon.docker("run", "--rm", "--name", "shown", "--link", "guest:g", "busybox", "env").stdout
    assert {"G_ENV_SECRET=owners", f"G_PORT_5432_TCP_ADDR={net.address('owner')}", "G_NAME=/shown/g"} <= {*done.split()}
    net.daemon.docker("stop", "-t", "0", "owner")
    net.run("taker")
    net.daemon.docker("start", "owner")
    hosts = net.daemon.docker("exec", "web", "cat", "/etc/hosts").stdout
    assert [line.split()[0] for line in hosts.splitlines() if "\tg " in line] == [net.address("owner")]
    net.daemon.docker("stop", "-t", "0", "owner")
    assert "non running container: /owner AS /late/g" in refused(
        net, "run", "--name", "late", "--link", "guest:g", "busybox", "true"
    )
    net.run("on-host", "--network", "host")
    assert "host type networking can't be used with links" in refused(
        net, "run", "--link", "on-host", "busybox", "true"
    )
    net.daemon.docker("rm", "-f", "owner")
    said = refused(net, "create", "--link", "guest:g", "busybox", "true")
    assert "could not get container for guest" in said and "has been removed" in said
