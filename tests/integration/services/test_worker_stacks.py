"""Stacks over two hosts: images that only their user may pull, updates and rollbacks, and secrets that change."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.hosts import HostDaemon, Hosts
from tests.support.registry import PASSWORD, USERNAME, Registry
from tests.support.waiting import until

FILE = """
services:
  app:
    image: IMAGE
    command: ["sh", "-c", "echo I am $$RELEASE; exec sleep 600"]
    stop_grace_period: 0s
    environment: {RELEASE: "RELEASED"}
    secrets: [{source: SECRET, target: password}]
    deploy:
      mode: global
      restart_policy: {delay: 0s}
      update_config: {monitor: 300ms, failure_action: rollback}
      rollback_config: {monitor: 300ms}
secrets:
  first: {file: ./first.txt}
  second: {file: ./second.txt}
"""


class Two:
    """A manager, a worker, and a registry on the manager's host that asks for a login."""

    def __init__(self, hosts: Hosts, registry: Registry) -> None:
        known = ("--insecure-registry", "192.0.2.0/24")
        self.manager: HostDaemon = hosts[0].daemon(*known)
        self.worker: HostDaemon = hosts[1].daemon(*known)
        self.manager.docker("swarm", "init", "--advertise-addr", hosts[0].address)
        token = self.manager.docker("swarm", "join-token", "-q", "worker").stdout.strip()
        self.worker.docker("swarm", "join", "--token", token, f"{hosts[0].address}:2377")
        self.image = f"{registry.host}/team/app:1"
        self.manager.docker("login", "-u", USERNAME, "--password-stdin", registry.host, input=PASSWORD)
        self.manager.docker("tag", "busybox", self.image)
        self.manager.docker("push", self.image)
        self.manager.docker("rmi", self.image)

    def change(self, *command: str) -> None:
        """Until nobody else has changed the service at the same moment: its update goes on by itself."""

        def changed() -> bool:
            asked = self.manager.docker(*command, check=False)
            assert asked.returncode == 0 or "update out of sequence" in asked.stderr, asked.stderr
            return asked.returncode == 0

        until(changed, "the service is changed")

    def everywhere(self, *command: str) -> list[str]:
        """Return the output of the one task that each host runs; empty where there is none, or it fails."""
        said = []
        for daemon in (self.manager, self.worker):
            found = daemon.docker("ps", "-q", "--filter", "label=com.docker.swarm.service.name=app_app").stdout.split()
            answer = daemon.docker("exec", found[0], *command, check=False) if len(found) == 1 else None
            said.append(answer.stdout if answer is not None and answer.returncode == 0 else "")
        return said

    def release(self) -> list[str]:
        return self.everywhere("sh", "-c", "echo $RELEASE")

    def trouble(self, daemon: HostDaemon) -> str:
        """Return the reason why tasks of this host could not be."""
        node = daemon.http("GET", "/info").json()["Swarm"]["NodeID"]
        tasks = self.manager.http("GET", "/tasks").json()
        return "\n".join(task["Status"].get("Err", "") for task in tasks if task.get("NodeID") == node)

    def updated(self) -> str:
        shown = self.manager.http("GET", "/services/app_app").json()
        return str(shown.get("UpdateStatus", {}).get("State", ""))


Deploy = Callable[..., None]


@pytest.fixture(scope="module")
def two() -> Iterator[Two]:
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(2))
        where = f"{hosts[0].address}:0"
        registry = stack.enter_context(Registry(login=True, address=where, wrapper=hosts[0].enter))
        two = Two(hosts, registry)
        yield two
        two.worker.docker("swarm", "leave", "--force", check=False)
        two.manager.docker("swarm", "leave", "--force", check=False)


@pytest.fixture(scope="module")
def deploy(two: Two, tmp_path_factory: pytest.TempPathFactory) -> Deploy:
    project = tmp_path_factory.mktemp("project")
    (project / "first.txt").write_text("one")
    (project / "second.txt").write_text("two")

    def deploy(released: str, *options: str, secret: str = "first", image: str = "") -> None:
        text = FILE.replace("IMAGE", image or two.image).replace("RELEASED", released).replace("SECRET", secret)
        (project / "stack.yml").write_text(text)
        two.change("stack", "deploy", "--detach=true", *options, "-c", str(project / "stack.yml"), "app")

    return deploy


@pytest.mark.usefixtures("no_image_there")
def test_workers_pull_with_the_name_that_came_with_the_stack(two: Two, deploy: Deploy) -> None:
    # Without it the manager cannot even ask for the digest; the worker is told that it may not have the image.
    two.manager.docker("logout", two.image.partition("/")[0])
    deploy("zero", "--resolve-image", "never")
    until(lambda: "no basic auth credentials" in two.trouble(two.worker), "the worker is refused")
    assert two.release() == ["", ""]
    two.manager.docker("login", "-u", USERNAME, "--password-stdin", two.image.partition("/")[0], input=PASSWORD)
    deploy("one", "--with-registry-auth")
    until(lambda: two.release() == ["one\n", "one\n"], "it runs on both")
    listed = two.manager.docker("stack", "ps", "--filter", "desired-state=running", "-q", "app").stdout.split()
    assert len(listed) == 2
    logs = ("service", "logs", "--raw", "app_app")
    until(lambda: two.manager.docker(*logs).stdout.count("I am one\n") == 2, "both are heard")
    assert PASSWORD not in two.manager.docker("service", "inspect", "app_app").stdout


def test_updates_go_over_all_hosts_and_back(two: Two, deploy: Deploy) -> None:
    deploy("two", "--with-registry-auth")
    until(lambda: two.updated() == "completed" and two.release() == ["two\n", "two\n"], "the new one runs on both")
    two.change("service", "rollback", "--detach", "app_app")
    until(lambda: two.updated() == "rollback_completed" and two.release() == ["one\n", "one\n"], "the former one")
    # One that cannot start: nobody has this program, on whatever host it is tried first.
    two.change("service", "update", "--detach", "--args", "/no/such/program", "app_app")
    until(lambda: "/no/such/program" in two.trouble(two.manager) + two.trouble(two.worker), "it was tried")
    until(lambda: two.updated() == "rollback_completed", "it was given up")
    until(lambda: two.release() == ["one\n", "one\n"], "the former one runs on both")


def test_secrets_are_replaced_on_all_hosts(two: Two, deploy: Deploy) -> None:
    assert two.everywhere("cat", "/run/secrets/password") == ["one", "one"]
    deploy("one", "--with-registry-auth", secret="second")
    until(lambda: two.everywhere("cat", "/run/secrets/password") == ["two", "two"], "both have the new one")
    two.manager.docker("secret", "rm", "app_first")
    two.manager.docker("stack", "rm", "app")
    until(lambda: not two.manager.docker("ps", "-q").stdout and not two.worker.docker("ps", "-q").stdout, "all gone")


@pytest.fixture
def no_image_there(two: Two) -> None:
    """No host has the image, be it under another name with the same contents."""
    for daemon in (two.manager, two.worker):
        assert daemon.docker("image", "inspect", two.image, check=False).returncode != 0
