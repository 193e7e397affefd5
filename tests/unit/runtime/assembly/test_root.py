"""A container's root on disk: its directories, what layers have by name, and what is refused. Mounts are a double."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from husk.errors import InvalidParameter, SystemFault
from husk.runtime.assembly import root as module
from husk.runtime.assembly.root import ContainerRoot, has_directory


@pytest.fixture
def root(tmp_path: Path) -> ContainerRoot:
    made = ContainerRoot(tmp_path / "container")
    made.create()
    return made


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The layers of each mount; a root counts as mounted from then on."""
    given: list[Sequence[str]] = []
    monkeypatch.setattr(module, "mount_overlay", lambda lower, *_, volatile: given.append(lower))
    monkeypatch.setattr(module, "unmount", lambda place, detach: given.clear())
    monkeypatch.setattr(ContainerRoot, "mounted", property(lambda self: bool(given)))
    return given


def test_its_directories_are_made_as_often_as_asked(root: ContainerRoot) -> None:
    (root.upper / "file").write_text("stays")
    root.create()
    assert sorted(os.listdir(root.directory)) == ["diff", "rootfs", "work"]
    assert not root.unchanged() and root.usage() == len("stays") and not root.mounted
    assert not ContainerRoot(root.directory / "nowhere").mounted


def test_the_first_mount_gives_it_the_look_of_the_image(
    root: ContainerRoot, mounted: list[Sequence[str]], tmp_path: Path
) -> None:
    layer = tmp_path / "layer"
    layer.mkdir()
    layer.chmod(0o711)
    root.mount([str(layer)])
    root.mount([str(layer)])
    assert mounted == [[str(layer)]] and stat.S_IMODE(root.upper.stat().st_mode) == 0o711
    root.unmount()
    (root.work / "work").mkdir()  # as the kernel does
    root.upper.chmod(0o700)  # as the container did
    root.mount([str(layer)])
    assert stat.S_IMODE(root.upper.stat().st_mode) == 0o700


def test_an_image_without_layers_is_an_empty_directory(root: ContainerRoot, mounted: list[Sequence[str]]) -> None:
    root.mount([])
    assert mounted == [[str(root.directory / "empty")]] and os.listdir(root.directory / "empty") == []
    root.remove()
    assert not root.directory.exists() and mounted == []
    root.remove()


def layers(tmp_path: Path, *trees: str) -> list[str]:
    """Layers, topmost first, each with these paths: `d/` is a directory, `f` a file, `l>` a link."""
    made = []
    for number, tree in enumerate(trees):
        layer = tmp_path / f"layer{number}"
        layer.mkdir()
        for path in tree.split():
            place = layer / path.rstrip(">")
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.endswith("/"):
                place.mkdir(parents=True, exist_ok=True)
            elif path.endswith(">"):
                place.symlink_to("elsewhere")
            else:
                place.write_text("")
        made.append(str(layer))
    return made


@pytest.mark.parametrize(
    ("trees", "path", "there"),
    [
        (["a/b/"], "/a/b", True),
        (["a/b/"], "a/./b/", True),
        (["x/", "a/b/"], "/a/b", True),
        (["a/", "a/b/"], "/a/b", True),
        (["a/"], "/a/b", False),
        (["a", "a/b/"], "/a/b", False),
        (["a>", "a/b/"], "/a/b", False),
        (["a/b", "a/b/"], "/a/b", False),
        ([], "/a", False),
        (["a/"], "/", True),
    ],
)
def test_what_layers_have_by_names_alone(tmp_path: Path, trees: list[str], path: str, there: bool) -> None:
    assert has_directory(layers(tmp_path, *trees), path) is there


def test_a_directory_to_begin_in(root: ContainerRoot) -> None:
    root.make_directory("/srv/app")
    assert (root.merged / "srv/app").is_dir()
    (root.merged / "file").write_text("")
    (root.merged / "loop").symlink_to("loop")
    for path in ("/file/x", "/loop/x", "/" + "n" * 300):
        with pytest.raises((InvalidParameter, SystemFault), match="Cannot mkdir"):
            root.make_directory(path)
    opened = root.open_directory("/srv")
    assert opened is not None and os.listdir(opened.fd) == ["app"]
    opened.close()
    assert root.open_directory("/nowhere") is None
    with pytest.raises(NotADirectoryError):
        root.open_directory("/file")


def test_no_link_leads_out_of_it(root: ContainerRoot, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    (root.merged / "passwd").symlink_to(tmp_path / "secret")
    assert root.text_of("/passwd") == ""
