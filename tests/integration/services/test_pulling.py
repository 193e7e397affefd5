"""Images of services come from registries, with the digest that the client saw and the name that it logged in with."""

from collections.abc import Iterator

import pytest

from tests.support.registry import PASSWORD, USERNAME, Registry
from tests.support.swarm import FOREVER, QUICK, Swarm
from tests.support.waiting import until


@pytest.fixture(scope="module")
def locked() -> Iterator[Registry]:
    with Registry(login=True) as registry:
        yield registry


def test_tasks_are_pulled_with_the_clients_name_whoever_has_died_since(fresh_swarm: Swarm, locked: Registry) -> None:
    swarm, daemon = fresh_swarm, fresh_swarm.daemon
    image = f"{locked.host}/team/app:1"
    daemon.docker("login", "-u", USERNAME, "--password-stdin", locked.host, input=PASSWORD)
    daemon.docker("tag", "busybox", image)
    daemon.docker("push", image)
    daemon.docker("rmi", image)
    made = ("service", "create", "--name", "web", "--with-registry-auth", *QUICK, image, *FOREVER)
    assert "converged" in daemon.docker(*made).stdout
    assert "@sha256:" in swarm.inspect("web")["Spec"]["TaskTemplate"]["ContainerSpec"]["Image"]
    [first] = swarm.settles("web", 1)
    daemon.docker("logout", locked.host)
    daemon.kill9()
    assert PASSWORD.encode() not in (daemon.config.data_root / "state.db").read_bytes()
    daemon.start()
    shown = daemon.http("GET", "/images/busybox/json").json()
    for name in shown["RepoTags"] + shown["RepoDigests"]:
        if name.startswith(locked.host):
            daemon.docker("rmi", "-f", name, check=False)
    assert daemon.docker("image", "inspect", image, check=False).returncode != 0
    daemon.docker("rm", "-f", first)
    until(lambda: swarm.containers("web") not in ([], [first]), "its image is pulled again")
    assert PASSWORD not in str(swarm.inspect("web"))
    # An update that brings no name keeps the one that is there.
    swarm.update("web", "--env-add", "A=1")
    second = swarm.settles("web", 1)
    assert until(lambda: swarm.settled("web", 1) or swarm.containers("web") == second, "it goes on")
