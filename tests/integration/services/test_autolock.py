"""A swarm with autolock: after a start of the daemon it wants its key before it tells or reads anything."""

import json
import os
import signal

from tests.integration.services.test_promise import _process
from tests.support.daemon import Daemon
from tests.support.swarm import Swarm
from tests.support.waiting import until

LOCKED = "Swarm is encrypted and needs to be unlocked before it can be used"
VALUE = "the-crown-jewels"


def unlock(daemon: Daemon, key: str) -> int:
    return daemon.http("POST", "/swarm/unlock", {"UnlockKey": key}).status


def state(daemon: Daemon) -> str:
    return str(daemon.http("GET", "/info").json()["Swarm"]["LocalNodeState"])


def lock(daemon: Daemon) -> str:
    """Turn it on; the key."""
    said = daemon.docker("swarm", "update", "--autolock").stdout
    key = daemon.docker("swarm", "unlock-key", "-q").stdout.strip()
    assert key in said and key.startswith("SWMKEY-1-")
    return key


def test_a_restart_locks_it_until_it_gets_its_key(fresh_swarm: Swarm) -> None:
    swarm, daemon = fresh_swarm, fresh_swarm.daemon
    daemon.docker("secret", "create", "key", "-", input=VALUE)
    daemon.docker("network", "create", "-d", "overlay", "mesh")
    swarm.create("web", "--secret", "key")
    swarm.create("plain")
    before = swarm.settles("web", 1) + swarm.settles("plain", 1)
    assert unlock(daemon, "SWMKEY-1-AAAA") == 409, "it is not locked"
    key = lock(daemon)
    data = daemon.config.data_root
    assert not (data / "swarm.key").exists() and (data / "swarm.lock").stat().st_mode & 0o777 == 0o600
    assert key.removeprefix("SWMKEY-1-").encode() not in (data / "state.db").read_bytes()

    daemon.restart()
    assert state(daemon) == "locked" and "Swarm: locked" in daemon.docker("info").stdout
    assert daemon.http("GET", "/_ping").headers["Swarm"] == "locked"
    for command in (
        ("service", "ls"),
        ("service", "scale", "-d", "web=3"),
        ("secret", "ls"),
        ("node", "ls"),
        ("network", "create", "-d", "overlay", "more"),
        ("network", "rm", "mesh"),
        ("swarm", "unlock-key"),
        ("swarm", "update", "--autolock=false"),
    ):
        refused = daemon.docker(*command, check=False)
        assert refused.returncode != 0 and LOCKED in refused.stderr, command
    assert unlock(daemon, "") == unlock(daemon, "open sesame") == unlock(daemon, "SWMKEY-1-!") == 400
    assert unlock(daemon, "SWMKEY-1-AAAA") == 401
    refused = daemon.docker("swarm", "leave", check=False)
    assert "Please unlock it first or use `--force`" in refused.stderr
    assert state(daemon) == "locked"
    daemon.docker("network", "prune", "-f")
    assert daemon.http("GET", "/networks/mesh").status == 200
    running = daemon.docker("ps", "-q", "--no-trunc").stdout.split()
    assert set(running) == set(before), "what runs goes on"

    # Even now what ends is replaced, as far as that needs no secret.
    daemon.docker("rm", "-f", *before)
    until(lambda: len(daemon.docker("ps", "-q").stdout.split()) == 1, "the service without secrets is back")
    assert unlock(daemon, key) == 200
    assert state(daemon) == "active"
    [web] = swarm.settles("web", 1)
    swarm.settles("plain", 1)
    assert daemon.docker("exec", web, "cat", "/run/secrets/key").stdout == VALUE
    assert daemon.docker("swarm", "unlock-key", "-q").stdout.strip() == key


def test_tasks_wait_for_their_secrets(fresh_swarm: Swarm) -> None:
    swarm, daemon = fresh_swarm, fresh_swarm.daemon
    daemon.docker("secret", "create", "key", "-", input=VALUE)
    swarm.create("web", "--secret", "key")
    [container] = swarm.settles("web", 1)
    key = lock(daemon)
    pid = _process(daemon, container)
    daemon.kill9()
    os.kill(pid, signal.SIGKILL)
    daemon.start()
    until(lambda: not daemon.docker("ps", "-q").stdout, "its end is seen")
    daemon.docker("swarm", "unlock", input=key + "\n")
    swarm.settles("web", 1)
    assert not [task for task in swarm.tasks("web") if task["Status"]["State"] == "rejected"], "it waited"


def test_the_key_is_changed_and_taken_away(fresh_swarm: Swarm) -> None:
    daemon = fresh_swarm.daemon
    daemon.docker("secret", "create", "key", "-", input=VALUE)
    assert daemon.http("GET", "/swarm/unlockkey").json() == {"UnlockKey": ""}
    old = lock(daemon)
    new = daemon.docker("swarm", "unlock-key", "-q", "--rotate").stdout.strip()
    assert new != old
    daemon.kill9()
    daemon.start()
    assert unlock(daemon, old) == 401 and unlock(daemon, new) == 200
    daemon.docker("swarm", "update", "--autolock=false")
    daemon.restart()
    assert state(daemon) == "active", "it needs no key any more"
    assert not (daemon.config.data_root / "swarm.lock").exists()
    swarm = fresh_swarm
    swarm.create("web", "--secret", "key")
    [container] = swarm.settles("web", 1)
    assert daemon.docker("exec", container, "cat", "/run/secrets/key").stdout == VALUE


def test_until_the_new_key_is_told_the_old_one_opens_too(fresh_swarm: Swarm) -> None:
    daemon = fresh_swarm.daemon
    old = lock(daemon)
    shown = daemon.http("GET", "/swarm").json()
    path = f"/swarm/update?version={shown['Version']['Index']}&rotateManagerUnlockKey=1"
    assert daemon.http("POST", path, shown["Spec"]).status == 200
    daemon.kill9()
    daemon.start()
    assert unlock(daemon, old) == 200
    new = daemon.docker("swarm", "unlock-key", "-q").stdout.strip()
    assert new != old
    daemon.restart()
    assert unlock(daemon, old) == 401 and unlock(daemon, new) == 200


def test_whoever_lost_the_key_can_only_leave(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    said = daemon.docker("swarm", "init", "--autolock").stdout
    assert "SWMKEY-1-" in said
    swarm = Swarm(daemon)
    daemon.docker("secret", "create", "key", "-", input=VALUE)
    swarm.create("web", "--secret", "key")
    swarm.settles("web", 1)
    daemon.restart()
    daemon.docker("swarm", "leave", "--force")
    assert not daemon.docker("ps", "-aq").stdout and state(daemon) == "inactive"
    assert not list(daemon.config.data_root.glob("swarm.*"))
    daemon.docker("swarm", "init")
    assert json.loads(daemon.docker("secret", "ls", "--format", "json").stdout or "[]") == []
    daemon.docker("swarm", "leave", "--force")
