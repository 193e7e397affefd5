from typing import Any

import pytest

from husk.dashboard.grouping import (
    Group,
    PortLink,
    group_of,
    grouped,
    in_order,
    newest_failures,
    ports,
    row,
)  # fmt: skip

PROJECT, SERVICE = "com.docker.compose.project", "com.docker.compose.service"


def container(name: str, project: str = "", service: str = "", state: str = "running", **more: Any) -> dict[str, Any]:
    labels = {key: value for key, value in ((PROJECT, project), (SERVICE, service)) if value}
    return {"Id": name * 3, "Names": [f"/{name}"], "State": state, "Labels": labels, "Image": "busybox", **more}


def groups(*containers: dict[str, Any]) -> list[Group]:
    rows = [row(each, "localhost") for each in containers]
    return grouped(rows, {str(each["Id"]): group_of(each) for each in containers})


def task(name: str, slot: int, state: str = "running", **more: Any) -> dict[str, Any]:
    labels = {"com.docker.swarm.service.name": name, "com.docker.swarm.task.name": f"{name}.{slot}.{'x' * 25}"}
    return {"Id": str(more), "Names": [f"/{name}.{slot}.{'x' * 25}"], "State": state, "Labels": labels, **more}


def test_projects_come_by_name_and_the_rest_last() -> None:
    found = groups(container("x"), container("b", "shop"), container("a", "Blog"))
    assert [group.name for group in found] == ["Blog", "shop", ""]
    assert [group.id for group in found] == ["project-Blog", "project-shop", "others"]


def test_a_group_keeps_the_order_of_its_rows() -> None:
    [found] = groups(container("web-2", "p", "web"), container("db-1", "p", "db"))
    assert [(row.name, row.service) for row in found.rows] == [("web-2", "web"), ("db-1", "db")]


def test_a_group_counts_what_runs_and_is_as_bad_as_its_worst() -> None:
    [found] = groups(container("a"), container("b", state="exited"), container("c", state="paused"))
    assert (found.running, found.alive, found.tone) == (1, 2, "warn")
    assert [row.runs for row in found.rows] == [True, False, True]
    [found] = groups(container("a"), container("b", state="exited", Status="Exited (2) 3 hours ago"))
    assert found.tone == "bad"


def test_tasks_are_grouped_by_their_stack_or_their_service() -> None:
    stack = {"com.docker.stack.namespace": "shop", "com.docker.swarm.service.name": "shop_web"}
    [group] = groups({"Id": "1", "Names": ["/t"], "State": "running", "Labels": stack})
    assert (group.kind, group.name, group.rows[0].service) == ("stack", "shop", "shop_web")
    [group] = groups(task("web", 1))
    assert (group.kind, group.name, group.is_project, group.rows[0].task) == ("service", "web", False, "web.1")


def test_of_tasks_that_have_ended_the_newest_stands_for_all() -> None:
    ended = [task("bad", n, "exited", Status=f"Exited (1) {n} hours ago", Created=9 - n) for n in (1, 2, 3)]
    found = newest_failures(row(each, "h") for each in (*ended, task("bad", 1), container("x", state="exited")))
    assert [(each.task, each.state, each.ended) for each in found] == [
        ("bad.1", "running", 0), ("", "exited", 0), ("bad.1", "exited", 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "status", "word", "age", "tone"),
    [
        ("running", "Up 47 seconds", "running", "47 s", "good"),
        ("running", "Up About an hour (healthy)", "healthy", "1 h", "good"),
        ("running", "Up 2 days (unhealthy)", "unhealthy", "2 d", "bad"),
        ("running", "Up 1 second (health: starting)", "starting", "1 s", "warn"),
        ("exited", "Exited (3) 5 minutes ago", "exited 3", "5 min", "bad"),
        ("exited", "Exited (0) 2 weeks ago", "exited 0", "2 w", "idle"),
        ("created", "Created", "created", "", "idle"),
        ("restarting", "Restarting (1) 4 seconds ago", "restarting", "4 s", "warn"),
        ("dead", "Dead", "dead", "", "bad"),
    ],
)
def test_a_state_is_a_word_an_age_and_a_colour(state: str, status: str, word: str, age: str, tone: str) -> None:
    found = row(container("a", state=state, Status=status), "h")
    assert (found.word, found.age, found.tone) == (word, age, tone)


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
        PortLink("8080→80/tcp", "http://box.example:8080/", 8080),
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
        PortLink("4430→443/tcp", "https://[::1]:4430/", 4430),
    )


def test_what_no_browser_speaks_is_no_link_and_what_is_not_published_is_not_shown() -> None:
    told = [{"PrivatePort": 53, "PublicPort": 5353, "Type": "udp", "IP": "0.0.0.0"}, {"PrivatePort": 9, "Type": "tcp"}]
    assert ports(told, "h") == (PortLink("5353→53/udp", number=5353),)


def test_a_container_without_anything_is_shown() -> None:
    assert groups({"Id": "abc"})[0].rows[0].name == ""


def test_a_project_and_a_stack_of_one_name_are_two_groups() -> None:
    stack = {"Id": "1", "Names": ["/t"], "State": "running", "Labels": {"com.docker.stack.namespace": "shop"}}
    found = groups(stack, container("a", "shop"))
    assert [(group.name, group.kind) for group in found] == [("shop", "project"), ("shop", "stack")]


def test_what_others_depend_on_comes_first() -> None:
    needs = "com.docker.compose.depends_on"
    web, db, cache = (container(name, "p", name) for name in ("web", "db", "cache"))
    web["Labels"][needs] = "db:service_healthy:false,cache:service_started:true,gone:service_started:true"
    db["Labels"][needs] = "cache:service_started:false"
    assert in_order([web, db, cache]) == [["cache" * 3], ["db" * 3], ["web" * 3]]
    cache["Labels"][needs] = "web:service_started:false"
    assert in_order([web, db, cache]) == [["cache" * 3, "db" * 3, "web" * 3]]
    assert in_order([]) == []


def test_a_status_has_an_end() -> None:
    found = row({"Id": "a", "State": "exited", "Status": f"Exited ({'1' * 100_000}) {'2' * 100_000}"}, "h")
    assert len(found.status) <= 200 and found.exit_code is None and found.age == ""
