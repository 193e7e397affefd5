"""Archives that podman saved load in Husk, and those of Husk in podman; the ids are the same on both sides."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.images import busybox_layer, forget_images
from tests.support.podman import Podman
from tests.support.registry import tar_of

pytestmark = pytest.mark.skipif(bool(Podman.missing()), reason=Podman.missing())


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with Podman() as podman:
        yield podman


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon, podman: Podman) -> Iterator[None]:
    yield
    forget_images(daemon)
    podman("rmi", "--all", "--force")


def commit(daemon: Daemon, name: str) -> str:
    """An image of two layers; its id."""
    daemon.docker("run", "--name", "made", "busybox", "sh", "-c", "echo new > /new; ln -s new /soft; rm -r /var")
    try:
        return daemon.docker("commit", "-c", 'CMD ["cat", "/soft"]', "made", name).stdout.strip()
    finally:
        daemon.docker("rm", "made")


def id_in(podman: Podman, name: str) -> str:
    return "sha256:" + podman.text("image", "inspect", "--format", "{{.Id}}", name)


def test_podman_loads_what_husk_saved(daemon: Daemon, podman: Podman, tmp_path: Path) -> None:
    made = commit(daemon, "to/podman:1")
    archive = tmp_path / "saved.tar"
    daemon.docker("save", "-o", str(archive), "to/podman:1", "busybox")
    told = podman.text("load", "-i", str(archive))
    assert "to/podman:1" in told and "busybox:latest" in told
    assert id_in(podman, "to/podman:1") == made
    assert id_in(podman, "busybox") == daemon.docker("images", "-q", "--no-trunc", "busybox").stdout.strip()


@pytest.mark.parametrize("form", ["docker-archive", "oci-archive"])
def test_husk_loads_what_podman_saved(daemon: Daemon, podman: Podman, tmp_path: Path, form: str) -> None:
    layer = tmp_path / "layer.tar"
    layer.write_bytes(busybox_layer())
    podman("import", "-q", "-c", 'CMD ["echo", "from podman"]', str(layer), "localhost/theirs:1")
    archive = tmp_path / "saved.tar"
    podman("save", "-q", "--format", form, "-o", str(archive), "localhost/theirs:1")
    assert daemon.docker("load", "-i", str(archive)).stdout == "Loaded image: localhost/theirs:1\n"
    assert daemon.docker("images", "-q", "--no-trunc", "localhost/theirs:1").stdout.strip() == id_in(podman, "theirs:1")
    assert daemon.docker("run", "--rm", "localhost/theirs:1").stdout == "from podman\n"


def test_several_images_in_one_archive_of_podman(daemon: Daemon, podman: Podman, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(tar_of({"etc/name": name.encode()}))
        podman("import", "-q", str(tmp_path / name), f"localhost/{name}:1")
    archive = tmp_path / "saved.tar"
    podman("save", "-q", "--multi-image-archive", "-o", str(archive), "localhost/one:1", "localhost/two:1")
    daemon.docker("load", "-i", str(archive))
    for name in ("one", "two"):
        found = daemon.docker("images", "-q", "--no-trunc", f"localhost/{name}:1").stdout.strip()
        assert found == id_in(podman, f"{name}:1")


def test_there_and_back_again(daemon: Daemon, podman: Podman, tmp_path: Path) -> None:
    made = commit(daemon, "there/and:back")
    daemon.docker("save", "-o", str(tmp_path / "a.tar"), "there/and:back")
    podman("load", "-i", str(tmp_path / "a.tar"))
    podman("save", "-q", "-o", str(tmp_path / "b.tar"), "there/and:back")
    forget_images(daemon)
    daemon.docker("load", "-i", str(tmp_path / "b.tar"))
    assert made in daemon.docker("images", "-q", "--no-trunc").stdout.split()
    assert daemon.docker("run", "--rm", made).stdout == "new\n"
