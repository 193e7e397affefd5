"""`docker ps` and its filters."""

import pytest
from msgspec.structs import replace

from husk.engine.containers import listing
from husk.engine.model.container import Container, Endpoint, Health, MountPoint
from husk.engine.model.container_config import ContainerConfig, HostConfig, PortBinding
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter, NotFound
from husk.network.ports import PublishedPort
from tests.support.but import but
from tests.unit.engine.records import container

WEB = container("web", status="running", image="i1", created_ns=1, config=ContainerConfig(labels={"tier": "front"}))
DB = container("db", status="paused", image="i2", created_ns=2, config=ContainerConfig(exposed_ports={"5432/tcp": {}}))
JOB = container("job", status="exited", exit_code=3, image="i2", created_ns=3)
NEW = container("webcache", status="created", image="i3", created_ns=4)
FLAPPING = container("flap", status="restarting", created_ns=5)
WEB = but(WEB, endpoints={"bridge": Endpoint(network_name="bridge", network_id="abcdef")})
WEB = but(WEB, host_config=HostConfig(port_bindings={"80/tcp": [PortBinding(host_port="8080")], "81": None}))
WEB = but(WEB, published=[PublishedPort("tcp", "0.0.0.0", 8080, "10.0.0.2", 80)])
WEB = but(WEB, state=replace(WEB.state, health=Health(status="healthy")))
DB = but(DB, sandbox_path="/run/netns/db")
DB = but(DB, mounts=[MountPoint(type="bind", source="/srv/db", destination="/var/lib/db")])
ALL = [WEB, DB, JOB, NEW, FLAPPING]


def find(reference: str) -> Container:
    for one in ALL:
        if reference in (one.id, one.name):
            return one
    raise NotFound(f"No such container: {reference}")


def names(fields: dict[str, list[str]] | None = None, *, all: bool = True, limit: int = 0) -> list[str]:
    filters = Filters(fields)
    assert set(filters) <= set(listing.FILTERS)
    ancestors = {"base": {"i1", "i2"}}
    return [c.name for c in listing.select(ALL, all, limit, filters, find, lambda i: ancestors.get(i, set()))]


def test_the_newest_comes_first() -> None:
    assert names() == ["flap", "webcache", "job", "db", "web"]


def test_without_all_only_those_that_run_are_shown() -> None:
    assert names(all=False) == ["flap", "db", "web"]


def test_a_limit_means_the_newest_of_all() -> None:
    assert names(all=False, limit=2) == ["flap", "webcache"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ["web"]}, ["webcache", "web"]),
        ({"name": ["^web$"]}, ["web"]),
        ({"name": ["^/web$", "job"]}, ["job", "web"]),
        ({"name": ["*"]}, []),
        ({"id": [WEB.id[:12], DB.id]}, ["db", "web"]),
        ({"id": [""]}, []),
        ({"id": ["nobody"]}, []),
        ({"status": ["exited", "created"]}, ["webcache", "job"]),
        ({"exited": ["3"]}, ["job"]),
        ({"exited": ["0"]}, []),
        ({"health": ["healthy"]}, ["web"]),
        ({"health": ["none"]}, ["flap", "webcache", "job", "db"]),
        ({"label": ["tier"]}, ["web"]),
        ({"label": ["tier=front", "other"]}, []),
        ({"network": ["bridge"]}, ["web"]),
        ({"network": ["abc"]}, ["web"]),
        ({"network": ["bri"]}, []),
        ({"volume": ["/srv/db"]}, ["db"]),
        ({"volume": ["/var/lib/db"]}, ["db"]),
        ({"expose": ["5000-6000"]}, ["db"]),
        ({"expose": ["5432/udp"]}, []),
        ({"publish": ["8080/tcp"]}, ["web"]),
        ({"publish": ["80"]}, []),
        ({"publish": ["1-65535", "8000-9000", "1-8079"]}, ["web"]),
        ({"publish": ["8000-8079", "8081-9000/tcp", "8080/udp"]}, []),
        ({"ancestor": ["base"]}, ["job", "db", "web"]),
        ({"ancestor": ["unknown"]}, []),
        ({"before": ["job"]}, ["db", "web"]),
        ({"since": ["job"]}, ["flap", "webcache"]),
        ({"before": ["webcache"], "since": ["web"]}, ["job", "db"]),
        ({"is-task": ["true"]}, []),
        ({"is-task": ["false"], "name": ["db"]}, ["db"]),
    ],
)
def test_a_filter_takes_what_dockerd_takes(fields: dict[str, list[str]], expected: list[str]) -> None:
    assert names(fields) == expected


def test_an_id_that_is_not_unique_is_nobodys() -> None:
    one, two = container("one", id="ab1"), container("two", id="ab2")

    def found(prefix: str) -> list[str]:
        filters = Filters({"id": [prefix]})
        return [c.id for c in listing.select([one, two], True, 0, filters, find, lambda _: set())]

    assert (found("ab1"), found("ab")) == (["ab1"], [])


def test_a_status_asks_for_all_by_itself() -> None:
    assert names({"status": ["exited"]}, all=False) == ["job"]
    assert names({"exited": ["3"]}, all=False) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"status": ["asleep"]},
            "invalid filter 'status=asleep': invalid value for state (asleep): must be one of created, running, "
            "paused, restarting, removing, exited, dead",
        ),
        (
            {"health": ["fine"]},
            "invalid filter 'health=fine': invalid value for health (fine): must be one of none, starting, healthy, "
            "unhealthy",
        ),
        ({"is-task": []}, "invalid filter 'is-task'"),
        ({"exited": ["x"]}, "invalid filter 'exited=x'"),
        ({"publish": ["1:2"]}, "filter for 'publish' should not contain ':': 1:2"),
        ({"expose": ["5-4"]}, "error while looking up for expose 5-4: invalid port range"),
        ({"expose": ["http"]}, "error while looking up for expose http: invalid port range"),
    ],
)
def test_a_filter_without_meaning_is_refused(fields: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        names(fields)
    assert caught.value.message == message


@pytest.mark.parametrize("key", ["before", "since"])
def test_an_unknown_container_to_compare_with_is_not_found(key: str) -> None:
    with pytest.raises(NotFound, match=r"^No such container: nobody$"):
        names({key: ["nobody"]})
