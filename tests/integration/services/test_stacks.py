"""`docker stack`: a compose file as services, networks, configs and secrets."""

import json
from pathlib import Path

import pytest

from tests.integration.services.test_endpoints import lookup
from tests.support.swarm import Swarm
from tests.support.waiting import until

FILE = """
services:
  web:
    image: busybox
    command: ["sh", "-c", "while :; do cat /page | nc -l -p 80; done"]
    stop_grace_period: 0s
    configs: [{source: page, target: /page}]
    networks: [front]
    deploy:
      replicas: REPLICAS
      labels: {tier: front}
      restart_policy: {delay: 0s}
      update_config: {monitor: 200ms, parallelism: 0}
      resources: {limits: {memory: 64M}}
  db:
    image: busybox
    command: ["sleep", "600"]
    stop_grace_period: 0s
    environment: {ROLE: primary}
    secrets: [password]
    networks: [front, back]
    volumes: ["data:/data"]
  migrate:
    image: busybox
    command: ["true"]
    deploy: {mode: replicated-job}
networks:
  front: {driver: overlay, attachable: true}
  back: {driver: overlay, internal: true}
volumes:
  data: {}
configs:
  page: {file: ./page.txt}
secrets:
  password: {file: ./password.txt}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "page.txt").write_text("welcome\n")
    (tmp_path / "password.txt").write_text("hunter2\n")
    (tmp_path / "stack.yml").write_text(FILE.replace("REPLICAS", "2"))
    return tmp_path / "stack.yml"


def test_a_stack_comes_changes_and_goes(swarm: Swarm, project: Path) -> None:
    daemon = swarm.daemon
    deploy = ("stack", "deploy", "--detach=true", "--resolve-image", "never", "-c", str(project), "app")
    said = daemon.docker(*deploy).stdout
    for line in ("network app_front", "network app_back", "config app_page", "secret app_password", "service app_web"):
        assert f"Creating {line}" in said
    swarm.settles("app_web", 2)
    [db] = swarm.settles("app_db", 1)
    until(lambda: swarm.states("app_migrate") == ["complete"], "the job completes")
    assert daemon.docker("stack", "ls", "--format", "{{.Name}} {{.Services}}").stdout == "app 3\n"
    shown = daemon.docker("stack", "services", "--format", "{{.Name}} {{.Replicas}}", "app").stdout.splitlines()
    assert "app_web 2/2" in shown and "app_db 1/1" in shown
    assert len(daemon.docker("stack", "ps", "-q", "app").stdout.split()) == 4
    assert daemon.docker("exec", db, "cat", "/run/secrets/password").stdout == "hunter2\n"
    assert len(lookup(swarm, db, "web")) == 1 and len(lookup(swarm, db, "tasks.web")) == 2
    assert until(lambda: daemon.docker("exec", db, "nc", "-w", "2", "web", "80", check=False).stdout, "it answers")
    container = json.loads(daemon.docker("inspect", db).stdout)[0]
    assert set(container["NetworkSettings"]["Networks"]) == {"app_front", "app_back"}
    assert container["Config"]["Labels"]["com.docker.stack.namespace"] == "app"
    assert [mount["Name"] for mount in container["Mounts"] if mount["Type"] == "volume"] == ["app_data"]

    before = swarm.containers("app_web")
    again = daemon.docker(*deploy).stdout
    assert "Updating service app_web" in again
    project.write_text(FILE.replace("REPLICAS", "3"))
    daemon.docker(*deploy)
    assert set(before) < set(swarm.settles("app_web", 3)), "what is as declared is left alone"
    assert swarm.containers("app_db") == [db]

    gone = daemon.docker("stack", "rm", "--detach=true", "app")
    assert gone.returncode == 0, gone.stderr
    until(lambda: not swarm.containers("app_web", all=True), "its containers go")
    assert "app_" not in daemon.docker("network", "ls").stdout
    assert not daemon.docker("secret", "ls", "-q").stdout and not daemon.docker("config", "ls", "-q").stdout
    assert "app" not in daemon.docker("stack", "ls").stdout
    daemon.docker("volume", "rm", "app_data")
