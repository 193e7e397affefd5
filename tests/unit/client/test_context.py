import io
import os
import tarfile

import pytest

from husk.client.context import Context, dockerfile_alone
from husk.errors import InvalidParameter


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "context"
    root.mkdir()
    (root / "Dockerfile").write_text("FROM scratch\n")
    return root


def put(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def opened(archive):
    return tarfile.open(fileobj=io.BytesIO(archive))


def packed(context):
    return opened(b"".join(context.packed()))


def names(context):
    return sorted(packed(context).getnames())


def test_all_of_a_directory(root):
    put(root, "a", "d/b", "d/e/c")
    (root / "empty").mkdir()
    (root / "link").symlink_to("a")
    (root / "to-d").symlink_to("d")
    os.link(root / "a", root / "twice")
    archive = packed(Context(root))
    assert sorted(archive.getnames()) == [
        "Dockerfile",
        "a",
        "d",
        "d/b",
        "d/e",
        "d/e/c",
        "empty",
        "link",
        "to-d",
        "twice",
    ]
    assert {entry.uid for entry in archive} == {0}
    assert archive.getmember("link").issym()
    assert archive.getmember("to-d").issym()
    assert archive.getmember("twice").linkname == "a"
    content = archive.extractfile("d/e/c")
    assert content is not None
    assert content.read() == b"d/e/c"


def test_what_is_left_out(root):
    put(root, "keep", "drop.log", "node/x", "node/keep/y", "src/a.py", "src/a.pyc")
    (root / ".dockerignore").write_text("*.log\nnode\n**/*.pyc\n# comment\n")
    assert names(Context(root)) == [".dockerignore", "Dockerfile", "keep", "src", "src/a.py"]


def test_what_is_brought_back(root):
    put(root, "node/x", "node/keep/y")
    (root / ".dockerignore").write_text("node\n!node/keep\n")
    assert names(Context(root)) == [".dockerignore", "Dockerfile", "node/keep", "node/keep/y"]


def test_the_engine_needs_some_files_even_so(root):
    put(root, "a", "build/web.dockerfile", "build/other")
    (root / ".dockerignore").write_text("*\n")
    assert names(Context(root)) == [".dockerignore", "Dockerfile"]
    assert names(Context(root, "build/web.dockerfile")) == [".dockerignore", "build", "build/web.dockerfile"]


def test_a_dockerfile_from_elsewhere(root, tmp_path):
    put(root, "a")
    put(tmp_path, "other")
    (root / ".dockerignore").write_text("b\n")
    context = Context(root, str(tmp_path / "other"))
    archive = packed(context)
    assert sorted(archive.getnames()) == sorted([".dockerignore", context.dockerfile, "Dockerfile", "a"])
    ignored = archive.extractfile(".dockerignore")
    assert ignored is not None
    assert ignored.read() == f"b\n{context.dockerfile}".encode()


def test_the_dockerfile_by_an_absolute_path(root):
    put(root, "sub/Dockerfile")
    assert Context(root, str(root / "sub/Dockerfile")).dockerfile == "sub/Dockerfile"


async def test_in_pieces_while_it_is_read(root):
    (root / "large").write_bytes(os.urandom(1 << 20))
    pieces = [piece async for piece in Context(root).pieces()]
    assert len(pieces) > 2
    archive = opened(b"".join(pieces))
    content = archive.extractfile("large")
    assert content is not None
    assert content.read() == (root / "large").read_bytes()


def test_a_file_that_shrinks(root):
    put(root, "a")
    entries = Context(root).packed()
    (root / "a").write_text("")
    real = tarfile.TarFile.gettarinfo

    def told_before(self, *arguments):
        entry = real(self, *arguments)
        entry.size = entry.size or 5
        return entry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tarfile.TarFile, "gettarinfo", told_before)
        with pytest.raises(InvalidParameter, match="became shorter"):
            list(entries)


def test_what_cannot_be_a_context(root):
    with pytest.raises(InvalidParameter, match="no directory to build from"):
        Context(root / "nowhere")
    with pytest.raises(InvalidParameter, match="cannot read the Dockerfile"):
        Context(root, "/nowhere/Dockerfile")
    (root / ".dockerignore").write_text("a[\n")
    with pytest.raises(InvalidParameter, match=r"\.dockerignore"):
        Context(root)


def test_a_dockerfile_alone():
    archive = opened(dockerfile_alone("FROM scratch"))
    content = archive.extractfile("Dockerfile")
    assert content is not None
    assert content.read() == b"FROM scratch"


def test_which_directories_of_the_host_are_sent(root, tmp_path):
    put(root, "data/layers/l", "own/x", "out/data/x")
    (root / ".dockerignore").write_text("own\nout\n")
    assert Context(root).sends(root)
    assert Context(root).sends(root / "data/layers")
    assert not Context(root).sends(root / "own")
    assert not Context(root).sends(root / "out/data")
    assert not Context(root).sends(tmp_path / "elsewhere")
    (root / ".dockerignore").write_text("*\n!Dockerfile\n")
    assert not Context(root).sends(root / "data")
    (root / ".dockerignore").unlink()
    (tmp_path / "other-name").symlink_to(root)
    assert Context(tmp_path / "other-name").sends(root / "data")
