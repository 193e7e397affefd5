from typing import Any

import pytest

from husk.dashboard.grouping import PortLink, grouped, in_order, ports, row

PROJECT, SERVICE = "com.docker.compose.project", "com.docker.compose.service"


def container(name: str, project: str = "", service: str = "", state: str = "running", **more: Any) -> dict[str, Any]:
    labels = {key: value for key, value in ((PROJECT, project), (SERVICE, service)) if value}
    return {"Id": name * 3, "Names": [f"/{name}"], "State": state, "Labels": labels, "Image": "busybox", **more}


def test_projects_come_by_name_and_the_rest_last() -> None:
    found = grouped([container("x"), container("b", "shop"), container("a", "Blog")], "localhost")
    assert [group.name for group in found] == ["Blog", "shop", ""]


def test_services_of_a_project_stand_together() -> None:
    found = grouped([container("web-2", "p", "web"), container("db-1", "p", "db"), container("web-1", "p", "web")], "h")
    assert [row.name for row in found[0].rows] == ["db-1", "web-1", "web-2"]
    assert [row.service for row in found[0].rows] == ["db", "web", "web"]


def test_a_group_counts_what_runs() -> None:
    found = grouped([container("a"), container("b", state="exited"), container("c", state="paused")], "h")
    assert found[0].running == 1
    assert [row.runs for row in found[0].rows] == [True, False, True]


def test_tasks_of_a_stack_are_grouped_by_it() -> None:
    labels = {"com.docker.stack.namespace": "shop", "com.docker.swarm.service.name": "shop_web"}
    [group] = grouped([{"Id": "1", "Names": ["/t"], "State": "running", "Labels": labels}], "h")
    assert (group.name, group.rows[0].service) == ("shop", "shop_web")


def test_health_is_read_out_of_the_status() -> None:
    for status, health, rest in (
        ("Up 5 minutes (healthy)", "healthy", "Up 5 minutes"),
        ("Up 1 second (health: starting)", "starting", "Up 1 second"),
        ("Up 2 hours (unhealthy)", "unhealthy", "Up 2 hours"),
        ("Exited (0) 2 days ago", "", "Exited (0) 2 days ago"),
    ):
        found = row(container("a", Status=status), "h")
        assert (found.health, found.status) == (health, rest)


def test_a_port_is_one_link_by_the_name_that_the_browser_uses() -> None:
    bound = {"PrivatePort": 80, "PublicPort": 8080, "Type": "tcp"}
    assert ports([{**bound, "IP": "0.0.0.0"}, {**bound, "IP": "::"}], "box.example") == (
        PortLink("8080→80/tcp", "http://box.example:8080/"),
    )


@pytest.mark.parametrize(
    ("address", "hostname", "named"),
    [
        ("0.0.0.0", "127.0.0.1", "localhost"),
        ("127.0.0.1", "127.0.0.1", "localhost"),
        ("::1", "[::1]", "localhost"),
        ("0.0.0.0", "localhost", "127.0.0.1"),
        ("127.0.0.1", "localhost", "127.0.0.1"),
        ("192.0.2.1", "127.0.0.1", "192.0.2.1"),
    ],
)
def test_a_port_of_the_loopback_has_another_name_than_the_dashboard(address: str, hostname: str, named: str) -> None:
    """Of another name is another site: no cookie goes there."""
    [link] = ports([{"IP": address, "PrivatePort": 80, "PublicPort": 8080, "Type": "tcp"}], hostname)
    assert link.url == f"http://{named}:8080/"


def test_a_port_of_one_address_leads_there() -> None:
    assert ports([{"IP": "::1", "PrivatePort": 443, "PublicPort": 4430, "Type": "tcp"}], "h") == (
        PortLink("4430→443/tcp", "https://[::1]:4430/"),
    )


def test_what_no_browser_speaks_is_no_link_and_what_is_not_published_is_not_shown() -> None:
    told = [{"PrivatePort": 53, "PublicPort": 5353, "Type": "udp", "IP": "0.0.0.0"}, {"PrivatePort": 9, "Type": "tcp"}]
    assert ports(told, "h") == (PortLink("5353→53/udp"),)


def test_a_container_without_anything_is_shown() -> None:
    assert grouped([{"Id": "abc"}], "h")[0].rows[0].name == ""


def test_a_project_and_a_stack_of_one_name_are_two_groups() -> None:
    stack = {"Id": "1", "Names": ["/t"], "State": "running", "Labels": {"com.docker.stack.namespace": "shop"}}
    found = grouped([stack, container("a", "shop")], "h")
    assert [(group.name, group.is_stack, group.is_project) for group in found] == [
        ("shop", False, True), ("shop", True, False),
    ]  # fmt: skip


def test_what_others_depend_on_comes_first() -> None:
    needs = "com.docker.compose.depends_on"
    web, db, cache = (container(name, "p", name) for name in ("web", "db", "cache"))
    web["Labels"][needs] = "db:service_healthy:false,cache:service_started:true,gone:service_started:true"
    db["Labels"][needs] = "cache:service_started:false"
    assert in_order([web, db, cache]) == [["cache" * 3], ["db" * 3], ["web" * 3]]
    cache["Labels"][needs] = "web:service_started:false"
    assert in_order([web, db, cache]) == [["cache" * 3, "db" * 3, "web" * 3]]
    assert in_order([]) == []
