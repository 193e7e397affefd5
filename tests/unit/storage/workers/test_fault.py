"""Faults of workers in the daemon's log."""

from husk.storage.workers.fault import tell_fault


def test_what_a_worker_was_reading_is_not_obeyed_and_begins_no_line_of_the_log(capsys):
    try:
        raise ValueError("odd: \x1b]0;title\x07\ntime=now level=info msg=forged")
    except ValueError:
        tell_fault()
    told = capsys.readouterr().err
    assert "\\x1b]0;title\\x07" in told and told.endswith("msg=forged\n")
    assert all(line.startswith("  ") for line in told.splitlines())
