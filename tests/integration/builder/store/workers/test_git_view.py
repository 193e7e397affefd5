"""Git's view of the host."""

import os

import pytest

from husk.builder.store.workers.git_view import show


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_git_sees_of_the_host(tmp_path):
    view, work = tmp_path / "view", tmp_path / "work"
    view.mkdir()
    work.mkdir()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            show(str(view), str(work), "")
            hidden = ("/root", "/etc/shadow", "/proc/self")
            found = [*os.listdir("/"), *(path for path in hidden if os.path.exists(path))]
            os.write(write_end, " ".join(found).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end) as pipe:
        said = pipe.read().split()
    os.waitpid(child, 0)
    assert {"etc", "dev", "tmp", "usr", "work"} <= set(said)
    assert not {"root", "home", "var", "proc", "run", "sys"} & set(said)
    assert not [path for path in said if path.startswith("/")]
