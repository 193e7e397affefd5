"""History: what made an image, newest step first."""

from tests.support.daemon import Daemon
from tests.support.images import busybox_layer, forget_images
from tests.support.registry import Registry, push_image, tar_of


def test_a_pulled_image_shows_its_steps(daemon: Daemon) -> None:
    with Registry() as registry:
        image = push_image(registry, "app", "1", [busybox_layer(), tar_of({"etc/motd": b"12345"})])
        name = f"{registry.host}/app:1"
        daemon.docker("pull", "-q", name)
        top, base = daemon.http("GET", f"/v1.47/images/{name}/history").json()
    assert top == {
        "Id": image.config_digest,
        "Created": 1704164645,
        "CreatedBy": "layer 1",
        "Tags": [name],
        "Size": 5,
        "Comment": "",
    }
    assert (base["Id"], base["Tags"], base["CreatedBy"]) == ("<missing>", None, "layer 0")
    assert base["Size"] > 100_000
    forget_images(daemon)


def test_a_committed_image_knows_its_parent(daemon: Daemon) -> None:
    daemon.docker("run", "--name", "made", "busybox", "sh", "-c", "echo 123 > /new")
    daemon.docker("commit", "-m", "a step", "made", "child:1")
    shown = daemon.docker("history", "--no-trunc", "--format", "{{.ID}} {{.Size}} {{.Comment}}", "child:1").stdout
    top, parent = shown.splitlines()
    ids = [daemon.http("GET", f"/images/{name}/json").json()["Id"] for name in ("child:1", "busybox")]
    assert top == f"{ids[0]} 4B a step"
    assert parent.split()[0] == ids[1]
    forget_images(daemon)


def test_no_such_image_and_no_such_platform(daemon: Daemon) -> None:
    assert daemon.http("GET", "/images/nothing/history").status == 404
    wanted = '{"os":"linux","architecture":"s390x"}'.replace('"', "%22").replace("{", "%7B").replace("}", "%7D")
    assert daemon.http("GET", f"/images/busybox/history?platform={wanted}").status == 404
    assert daemon.http("GET", "/images/busybox/history?platform=linux").status == 400
