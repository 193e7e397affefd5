import os
import threading

import pytest

from husk.kernel import thread_files


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_thread_has_a_directory_and_a_mask_of_its_own(tmp_path):
    found: list[object] = []

    def work() -> None:
        thread_files.use_own()
        child = threading.Thread(target=lambda: found.append(os.getcwd()))
        child.start()
        child.join()
        (tmp_path / "file").touch()

    here, mask = os.getcwd(), os.umask(0o077)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(mask)
    assert (found, os.getcwd()) == (["/"], here)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
