import hashlib
import json
from pathlib import Path

import pytest

from husk.client import address
from husk.client.address import Address, normal, resolve
from husk.errors import InvalidParameter, NotFound


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".docker").mkdir()
    return tmp_path


def add_context(home: Path, name: str, host: str, *, tls: bool = False, skip: bool = False) -> Path:
    key = hashlib.sha256(name.encode()).hexdigest()
    meta = home / ".docker/contexts/meta" / key
    meta.mkdir(parents=True)
    endpoint = {"Host": host, "SkipTLSVerify": skip}
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": endpoint}}))
    certificates = home / ".docker/contexts/tls" / key / "docker"
    if tls:
        certificates.mkdir(parents=True)
    return certificates


def where(home: Path, given: str = "", context: str = "", **environment: str) -> Address:
    return resolve(given, context, {"HOME": str(home), **environment}, dockers=f"unix://{home}/docker.sock")


def test_what_is_said_comes_before_the_environment(home):
    add_context(home, "far", "tcp://far:1")
    said = {"HUSK_HOST": "unix:///husk", "DOCKER_HOST": "unix:///docker", "DOCKER_CONTEXT": "far"}
    assert where(home, "unix:///given", **said).url == "unix:///given"
    assert where(home, "", "far", **said).url == "tcp://far:1"
    assert where(home, **said).url == "unix:///husk"
    assert where(home, **{**said, "HUSK_HOST": ""}).url == "unix:///docker"
    assert where(home, DOCKER_CONTEXT="far").url == "tcp://far:1"
    assert where(home, "", "default", DOCKER_HOST="unix:///docker").url == "unix:///docker"
    with pytest.raises(InvalidParameter, match="both --host and --context"):
        where(home, "unix:///a", "far")


def test_contexts_of_the_docker_client(home):
    near = add_context(home, "near", "tcp://near", tls=True)
    far = add_context(home, "far", "tcp://far:1", tls=True, skip=True)
    add_context(home, "other", "ssh://me@other")
    assert where(home, "", "near") == Address("tcp://near:2376", near, True)
    assert where(home, "", "far") == Address("tcp://far:1", far, False)
    (home / ".docker/config.json").write_text('{"currentContext": "other"}')
    assert where(home).url == "ssh://me@other"
    assert where(home, DOCKER_CONFIG=str(home / "elsewhere")).url == address.DEFAULT
    with pytest.raises(NotFound, match="context 'lost' does not exist"):
        where(home, "", "lost")
    (home / ".docker/config.json").write_text("{")
    with pytest.raises(InvalidParameter, match=r"config\.json is not JSON"):
        where(home)


def test_tls_as_the_environment_says(home):
    assert where(home, "tcp://h", DOCKER_TLS_VERIFY="1") == Address("tcp://h:2376", home / ".docker", True)
    assert where(home, "tcp://h:5", DOCKER_TLS="1", DOCKER_CERT_PATH="/certs") == Address(
        "tcp://h:5", Path("/certs"), False
    )
    assert where(home, "unix:///s", DOCKER_TLS_VERIFY="1") == Address("unix:///s")


def test_the_sockets_that_daemons_have(home):
    def where(home: Path) -> Address:
        ours, dockers = (f"unix://{home}/{name}.sock" for name in ("husk", "docker"))
        return resolve("", "", {"HOME": str(home)}, ours, dockers)

    assert where(home).url == f"unix://{home}/husk.sock"
    (home / "docker.sock").touch()
    assert where(home).url == f"unix://{home}/docker.sock"
    (home / "husk.sock").touch()
    assert where(home).url == f"unix://{home}/husk.sock"


def test_addresses_in_their_normal_form():
    assert normal("host:80") == "tcp://host:80"
    assert normal("tcp://[::1]") == "tcp://[::1]:2375"
    assert normal("tcp://[::1]:99/") == "tcp://[::1]:99"
    assert normal("http://h:1") == "tcp://h:1"
    for wrong in ("", "unix://", "unix://relative", "ftp://x", "tcp://h:p", "tcp://:80", "ssh://", "ssh://-oProxy"):
        with pytest.raises(InvalidParameter, match="invalid address"):
            normal(wrong)


@pytest.mark.parametrize("port", ["²", "٣", "99999", "9" * 5000])
def test_a_port_that_is_no_number_is_no_address(port):
    with pytest.raises(InvalidParameter):
        normal(f"tcp://127.0.0.1:{port}")
