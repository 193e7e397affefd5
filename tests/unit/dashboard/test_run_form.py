import json
from typing import Any

import pytest

from husk.api.http.request import Query
from husk.client.spec import document
from husk.dashboard.run_form import RunForm, copied
from husk.errors import InvalidParameter

FULL = RunForm(
    image="nginx:1.27",
    name="web",
    command="serve --title 'a b'",
    ports="8080:80\n127.0.0.1:53:53/udp\n[::1]::443\n9000",
    environment="A=b c\nPASSED_ON",
    volumes="data:/data:ro\n/srv:/srv",
    labels="tier=front",
    network="inner",
    restart="unless-stopped",
    memory="64m",
    cpus="1.5",
    user="1000",
    working_dir="/app",
    hostname="box",
    init=True,
)


def test_what_is_asked_for() -> None:
    body = document(FULL.spec())
    host = body["HostConfig"]
    assert body["Cmd"] == ["serve", "--title", "a b"] and body["Env"] == ["A=b c", "PASSED_ON"]
    assert host["PortBindings"] == {
        "80/tcp": [{"HostIp": "", "HostPort": "8080"}],
        "53/udp": [{"HostIp": "127.0.0.1", "HostPort": "53"}],
        "443/tcp": [{"HostIp": "::1", "HostPort": ""}],
        "9000/tcp": [{"HostIp": "", "HostPort": ""}],
    }
    assert host["Binds"] == ["data:/data:ro", "/srv:/srv"] and host["Memory"] == 64 << 20
    assert host["NanoCpus"] == 1_500_000_000 and host["RestartPolicy"]["Name"] == "unless-stopped" and host["Init"]


def test_the_same_by_hand() -> None:
    told = FULL.docker_run()
    assert told.startswith("docker run -d \\\n    --name web \\\n    -p 8080:80 \\\n")
    assert "-e 'A=b c'" in told and told.endswith("nginx:1.27 serve --title 'a b'")
    evil = RunForm(image="i", environment="A=$(reboot)", command="sh -c 'a; b'")
    assert "-e 'A=$(reboot)'" in evil.docker_run() and "'a; b'" in evil.docker_run()


def test_the_same_as_a_compose_file() -> None:
    yaml = pytest.importorskip("yaml")
    read = yaml.safe_load(FULL.compose())
    service = read["services"]["web"]
    assert service["command"] == ["serve", "--title", "a b"] and service["networks"] == ["inner"]
    assert service["mem_limit"] == "64m" and service["init"] is True
    assert read["volumes"] == {"data": {"external": True}} and read["networks"] == {"inner": {"external": True}}
    evil = RunForm(image="i", environment="A=$HOME\x85\u2028b", command="sh -c 'echo ${PATH}'")
    service = yaml.safe_load(evil.compose())["services"]["i"]
    assert service["environment"] == ["A=$$HOME\x85\u2028b"] and service["command"][2] == "echo $${PATH}"
    assert yaml.safe_load(RunForm(image="a: [b", name="x y").compose())["services"]["x-y"]["image"] == "a: [b"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("image", "", "which image"),
        ("ports", "80:80:80:80", "ports"),
        ("ports", "70000:80", "ports"),
        ("ports", "8080:80/x", "ports"),
        ("environment", "=x", "environment"),
        ("labels", "noequals", "labels"),
        ("cpus", "1e9", "processors"),
        ("cpus", "-1", "processors"),
        ("memory", "much", "invalid size"),
        ("command", "a 'b", "command"),
        ("restart", "sometimes", "restart"),
    ],
)
def test_what_cannot_be_understood_is_told_by_its_field(field: str, value: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        RunForm(**{"image": "i", field: value}).spec()  # type: ignore[arg-type]


def test_a_container_that_goes_at_its_end_is_not_restarted() -> None:
    with pytest.raises(InvalidParameter, match="removed at its end"):
        RunForm(image="i", auto_remove=True, restart="always").spec()


def test_a_form_is_read_as_browsers_send_it() -> None:
    found = RunForm.read(Query("image=+i+&ports=80%0D%0A81&init=1&unknown=x"))
    assert (found.image, found.ports, found.init, found.tty, found.restart) == ("i", "80\n81", True, False, "no")


def container(**more: Any) -> dict[str, Any]:
    host = {
        "PortBindings": {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8080"}], "53/udp": None}, "Binds": ["a:/a"],
        "Mounts": [{"Type": "volume", "Source": "v", "Target": "/v"}], "Memory": 1 << 20, "NanoCpus": 500_000_000,
        "NetworkMode": "inner", "RestartPolicy": {"Name": "always"}, **more,
    }  # fmt: skip
    labels = {"tier": "front", "com.docker.compose.project": "shop", "of": "image"}
    config = {"Image": "i:1", "Cmd": ["a b"], "Env": ["PATH=/bin", "A=1"], "Labels": labels, "Hostname": "c" * 12}
    return {"Id": "c" * 64, "Name": "/web", "Config": config, "HostConfig": host}


def test_a_copy_has_what_the_container_has_and_its_image_has_not() -> None:
    image = {"Config": {"Env": ["PATH=/bin"], "Labels": {"of": "image"}}}
    form, left = copied(container(), image)
    assert left == [] and form.name == "web-copy" and form.environment == "A=1" and form.labels == "tier=front"
    assert form.ports == "127.0.0.1:8080:80\n53/udp" and form.volumes == "a:/a\nv:/v" and form.hostname == ""
    assert form.command == "'a b'" and form.cpus == "0.5" and form.network == "inner"
    made = document(form.spec())["HostConfig"]
    assert made["Memory"] == 1 << 20 and made["PortBindings"]["80/tcp"] == [{"HostIp": "127.0.0.1", "HostPort": "8080"}]


def test_what_the_form_has_no_field_for_is_named() -> None:
    tmpfs = [{"Type": "tmpfs", "Target": "/t"}]
    found = container(CapAdd=["NET_ADMIN"], Privileged=True, Mounts=tmpfs, Devices=[{"PathOnHost": "/dev/fuse"}])
    found["Config"]["Healthcheck"] = {"Test": ["CMD", "true"]}
    assert copied(found, None)[1] == ["CapAdd", "Devices", "Healthcheck", "Mounts", "Privileged"]


def test_quotes_of_the_compose_file_are_those_of_json() -> None:
    assert json.dumps('a "b"') in RunForm(image='a "b"').compose()
