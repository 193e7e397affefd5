"""Words to a container about those it is linked to."""

from husk.engine.networks.links import ContainerLink, environment

DB = ContainerLink("my-db", "web", "db", "0123456789ab", "172.17.0.2", (), ("A=1", "HOME=/x", "PATH=/y", "EMPTY"))


def test_without_ports_the_name_and_the_variables():
    assert environment([DB]) == ["MY_DB_NAME=/web/my-db", "MY_DB_ENV_A=1"]


def test_three_ports_in_a_row_are_a_range():
    found = environment([DB._replace(ports=((80, "tcp"), (81, "tcp"), (82, "tcp"), (53, "udp")), env=())])
    assert found[:7] == [
        "MY_DB_PORT=udp://172.17.0.2:53",
        "MY_DB_PORT_80_TCP_START=tcp://172.17.0.2:80",
        "MY_DB_PORT_80_TCP_ADDR=172.17.0.2",
        "MY_DB_PORT_80_TCP_PROTO=tcp",
        "MY_DB_PORT_80_TCP_PORT_START=80",
        "MY_DB_PORT_80_TCP_END=tcp://172.17.0.2:82",
        "MY_DB_PORT_80_TCP_PORT_END=82",
    ]
    assert "MY_DB_PORT_81_TCP=tcp://172.17.0.2:81" in found


def test_the_names_in_hosts():
    assert DB.host_names == "my-db 0123456789ab db"
    assert DB._replace(alias="db").host_names == "db 0123456789ab"
