"""A daemon claims its directories and its pid file, and lets go of them however it ends."""

import fcntl
import os
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from husk.claims import claimed_pidfile, claimed_roots, pidfile_of
from husk.config import Config
from husk.errors import Conflict


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(data_root=tmp_path / "data", exec_root=tmp_path / "run")


def test_the_pid_file_exists_while_the_daemon_runs(config):
    with claimed_pidfile(config):
        assert pidfile_of(config).read_text() == f"{os.getpid()}\n"
    assert not pidfile_of(config).exists()


def test_a_second_daemon_on_the_same_data_root_is_refused(config, tmp_path):
    with (
        claimed_roots(config),
        pytest.raises(Conflict, match=rf"data root .* another daemon \(pid {os.getpid()}\).*--data-root"),
        claimed_roots(replace(config, exec_root=tmp_path / "other")),
    ):
        pass


def test_a_second_daemon_on_the_same_exec_root_is_refused(config, tmp_path):
    with (
        claimed_roots(config),
        pytest.raises(Conflict, match="exec root"),
        claimed_roots(replace(config, data_root=tmp_path / "other")),
    ):
        pass


def test_a_pid_file_of_a_live_daemon_is_refused(config, tmp_path):
    one = replace(config, pidfile=tmp_path / "pid")
    other = Config(data_root=tmp_path / "data2", exec_root=tmp_path / "run2", pidfile=tmp_path / "pid")
    with claimed_pidfile(one), pytest.raises(Conflict, match="pid file"), claimed_pidfile(other):
        pass


def test_a_pid_file_left_by_a_crash_is_taken_over_even_if_its_pid_lives(config):
    config.exec_root.mkdir()
    pidfile_of(config).write_text("1\n")
    with claimed_pidfile(config):
        assert pidfile_of(config).read_text() == f"{os.getpid()}\n"


def test_claims_end_with_the_context(config):
    for _ in range(2):
        with claimed_roots(config), claimed_pidfile(config):
            pass


def test_what_a_dead_process_still_holds_through_a_child_is_waited_for(config):
    config.data_root.mkdir()
    with (config.data_root / "lock").open("w") as of_the_child:
        of_the_child.write("999999999\n")
        of_the_child.flush()
        fcntl.flock(of_the_child, fcntl.LOCK_EX)
        letting_go = threading.Timer(0.1, fcntl.flock, (of_the_child, fcntl.LOCK_UN))
        letting_go.start()
        with claimed_roots(config):
            pass
        letting_go.join()
