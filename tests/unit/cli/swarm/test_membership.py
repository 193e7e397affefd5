import pytest

SWARM = {
    "ID": "x",
    "Version": {"Index": 3},
    "Spec": {"CAConfig": {"ForceRotate": 1}},
    "JoinTokens": {"Worker": "SWMTKN-w", "Manager": "SWMTKN-m"},
    "TLSInfo": {"TrustRoot": "PEM\n"},
}


@pytest.fixture
def swarm(engine):
    engine.answers("POST", "/swarm/init", "n1")
    engine.answers("POST", "/swarm/update", None)
    engine.answers("POST", "/swarm/join", None)
    engine.answers("POST", "/swarm/leave", None)
    engine.answers("GET", "/swarm", SWARM)
    engine.answers("GET", "/nodes/self", {"ID": "n1", "ManagerStatus": {"Addr": "192.0.2.1:2377"}})
    engine.answers("GET", "/info", {"Swarm": {"ControlAvailable": False}})
    return engine


def test_init_says_how_others_join(swarm, typed):
    told = typed("swarm", "init", "--advertise-addr", "192.0.2.1", "--cert-expiry", "48h").out
    assert "husk swarm join --token SWMTKN-w 192.0.2.1:2377" in told
    asked = swarm.last("POST", "/swarm/init").document
    assert asked["AdvertiseAddr"] == "192.0.2.1" and asked["SubnetSize"] == 24
    assert asked["Spec"]["CAConfig"] == {"NodeCertExpiry": 48 * 3600 * 10**9}


def test_join_and_leave(swarm, typed):
    assert "join-token worker" in typed("swarm", "join", "192.0.2.1:2377").err
    told = typed("swarm", "join", "--token", "t", "192.0.2.1:2377")
    assert told.out == "This node joined a swarm as a worker.\n"
    assert swarm.last("POST", "/swarm/join").document["RemoteAddrs"] == ["192.0.2.1:2377"]
    assert typed("swarm", "leave", "-f").out == "Node left the swarm.\n"


def test_tokens(swarm, typed):
    assert typed("swarm", "join-token", "-q", "manager").out == "SWMTKN-m\n"
    assert "Successfully rotated worker" in typed("swarm", "join-token", "--rotate", "worker").out
    assert swarm.last("POST", "/swarm/update").query["rotateWorkerToken"] == "1"
    assert typed("swarm", "join-token", "boss").err == "husk: unknown role boss: expected worker or manager\n"


def test_unlocking(swarm, typed):
    swarm.answers("GET", "/swarm/unlockkey", {"UnlockKey": "SWMKEY-1"})
    assert typed("swarm", "unlock-key", "-q").out == "SWMKEY-1\n"
    assert "SWMKEY-1" in typed("swarm", "update", "--autolock").out
    assert swarm.last("POST", "/swarm/update").document["EncryptionConfig"] == {"AutoLockManagers": True}
    swarm.answers("GET", "/swarm/unlockkey", {"UnlockKey": ""})
    assert "no unlock key is set" in typed("swarm", "unlock-key").err
    swarm.answers("POST", "/swarm/unlock", None)
    assert typed("swarm", "unlock", given="SWMKEY-1\n").code == 0
    assert swarm.last("POST", "/swarm/unlock").document == {"UnlockKey": "SWMKEY-1"}


def test_the_authority(swarm, typed):
    assert typed("swarm", "ca").out == "PEM\n"
    assert typed("swarm", "ca", "--rotate").out == "PEM\n"
    assert swarm.last("POST", "/swarm/update").document["CAConfig"]["ForceRotate"] == 2
    assert "requires the `--rotate` flag" in typed("swarm", "ca", "--cert-expiry", "1h").err
